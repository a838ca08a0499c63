"""Graph operators: ``CustomOpBuilder(op_def=)``, C++ operators that YAML files define.

yaml_files.py reads files; kinds.py has the kinds of arguments, definitions.py what an operator is,
with its checks, handlers.py the conversions that a file may name. source.py writes the C++ that
gives msops the operators of a module; operators.py calls them, after arguments.py has checked what
was passed; gradients.py has their ``bprop``; modules.py is what ``load`` returns, and generated.py
writes files to import that from.

Modules: arguments, definitions, generated, gradients, handlers, kinds, modules, operators, source,
yaml_files.
"""
