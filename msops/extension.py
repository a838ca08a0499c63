"""Names for building C++ extensions."""

from msops._ascend.aclnn import register_aclnn as register_aclnn
