"""The families of operators: importing one enters its operators into the table."""

from msops._ascend.aclnn import activations as activations
from msops._ascend.aclnn import arithmetic as arithmetic
from msops._ascend.aclnn import backward as backward
from msops._ascend.aclnn import caches as caches
from msops._ascend.aclnn import comparisons as comparisons
from msops._ascend.aclnn import convolution as convolution
from msops._ascend.aclnn import creation as creation
from msops._ascend.aclnn import deformable_attention as deformable_attention
from msops._ascend.aclnn import dynamic_quantization as dynamic_quantization
from msops._ascend.aclnn import flash_attention as flash_attention
from msops._ascend.aclnn import indexing as indexing
from msops._ascend.aclnn import losses as losses
from msops._ascend.aclnn import mixture as mixture
from msops._ascend.aclnn import normalization as normalization
from msops._ascend.aclnn import optimizers as optimizers
from msops._ascend.aclnn import ordering as ordering
from msops._ascend.aclnn import pooling as pooling
from msops._ascend.aclnn import products as products
from msops._ascend.aclnn import quantization as quantization
from msops._ascend.aclnn import random as random
from msops._ascend.aclnn import reductions as reductions
from msops._ascend.aclnn import rotary as rotary
from msops._ascend.aclnn import shapes as shapes
from msops._ascend.aclnn import sparse_attention as sparse_attention
from msops._ascend.aclnn import unary as unary
