"""The families of operators: importing one enters its operators into the table."""

from msops._aclnn import activations as activations
from msops._aclnn import arithmetic as arithmetic
from msops._aclnn import attention as attention
from msops._aclnn import backward as backward
from msops._aclnn import comparisons as comparisons
from msops._aclnn import creation as creation
from msops._aclnn import indexing as indexing
from msops._aclnn import normalization as normalization
from msops._aclnn import ordering as ordering
from msops._aclnn import pooling as pooling
from msops._aclnn import products as products
from msops._aclnn import reductions as reductions
from msops._aclnn import shapes as shapes
from msops._aclnn import unary as unary
