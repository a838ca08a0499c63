"""What C++ extensions are built with."""

from msops._ascend.aclnn import register_aclnn as register_aclnn
