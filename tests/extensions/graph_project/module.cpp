// module.cpp: the module of the project.
#include "module.h"

PYBIND11_MODULE(MS_EXTENSION_NAME, m) {
  m.doc() = "Operators of a project";
  Registrations::Instance().ApplyTo(m);
}
