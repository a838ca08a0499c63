"""Op info: what a custom op accepts, from MindSpore's builders to the guard that checks a call.

May import: `_base`.
Modules: attributes, builders, data_type, declared, decorators, fields, guard, kernel_builders,
model, parse, rows, tbe_builder.
"""

from typing import TYPE_CHECKING

from msops._base.missing_names import missing_names as _missing_names
from msops._op_info.attributes import bind_attributes as bind_attributes
from msops._op_info.attributes import call_attribute_names as call_attribute_names
from msops._op_info.attributes import call_attributes as call_attributes
from msops._op_info.attributes import decode_text as decode_text
from msops._op_info.declared import REQUIRED as REQUIRED
from msops._op_info.declared import declare_attributes as declare_attributes
from msops._op_info.declared import is_attribute as is_attribute
from msops._op_info.model import Attribute as Attribute
from msops._op_info.model import OpInfo as OpInfo
from msops._op_info.model import Port as Port
from msops._op_info.model import Row as Row

if TYPE_CHECKING:
    from msops._op_info.builders import CustomRegOp as CustomRegOp
    from msops._op_info.builders import RegOp as RegOp
    from msops._op_info.data_type import DataType as DataType
    from msops._op_info.decorators import custom_info_register as custom_info_register
    from msops._op_info.decorators import op_info_register as op_info_register
    from msops._op_info.guard import format_rows as format_rows
    from msops._op_info.guard import group_outputs as group_outputs
    from msops._op_info.guard import match as match
    from msops._op_info.guard import matching_rows as matching_rows
    from msops._op_info.kernel_builders import AiCPURegOp as AiCPURegOp
    from msops._op_info.kernel_builders import AkgAscendRegOp as AkgAscendRegOp
    from msops._op_info.kernel_builders import AkgCpuRegOp as AkgCpuRegOp
    from msops._op_info.kernel_builders import AkgGpuRegOp as AkgGpuRegOp
    from msops._op_info.kernel_builders import AkgRegOp as AkgRegOp
    from msops._op_info.kernel_builders import CpuRegOp as CpuRegOp
    from msops._op_info.parse import read_reg_info as read_reg_info
    from msops._op_info.tbe_builder import TBERegOp as TBERegOp

# What only ops with op info need; most have none.
_LATER = {
    "AiCPURegOp": "msops._op_info.kernel_builders",
    "AkgAscendRegOp": "msops._op_info.kernel_builders",
    "AkgCpuRegOp": "msops._op_info.kernel_builders",
    "AkgGpuRegOp": "msops._op_info.kernel_builders",
    "AkgRegOp": "msops._op_info.kernel_builders",
    "CpuRegOp": "msops._op_info.kernel_builders",
    "CustomRegOp": "msops._op_info.builders",
    "DataType": "msops._op_info.data_type",
    "RegOp": "msops._op_info.builders",
    "TBERegOp": "msops._op_info.tbe_builder",
    "custom_info_register": "msops._op_info.decorators",
    "format_rows": "msops._op_info.guard",
    "group_outputs": "msops._op_info.guard",
    "match": "msops._op_info.guard",
    "matching_rows": "msops._op_info.guard",
    "op_info_register": "msops._op_info.decorators",
    "read_reg_info": "msops._op_info.parse",
}
__getattr__ = _missing_names(__name__, _LATER)
