// module.h: how projects register operators: each source its own, and one source the module.
#ifndef TESTS_GRAPH_PROJECT_MODULE_H_
#define TESTS_GRAPH_PROJECT_MODULE_H_

#include <pybind11/pybind11.h>

#include <functional>
#include <utility>
#include <vector>

#include "kernel/ascend/custom/kernel_mod_impl/custom_register.h"

class Registrations {
 public:
  using Registration = std::function<void(pybind11::module_&)>;
  static Registrations& Instance() {
    static Registrations instance;
    return instance;
  }
  bool Add(Registration registration, bool is_pynative) {
    (is_pynative ? first_ : last_).push_back(std::move(registration));
    return true;
  }
  void ApplyTo(pybind11::module_& m) {
    for (const auto& registration : first_) registration(m);
    for (const auto& registration : last_) registration(m);
  }

 private:
  std::vector<Registration> first_;
  std::vector<Registration> last_;
};

// An operator for graphs, and an empty function unless the module has another of that name.
#define REG_GRAPH_MODE_OP(op, InferClass, KernelClass)                  \
  MS_CUSTOM_OPS_REGISTER(op, InferClass, KernelClass);                  \
  static void op##_func() {}                                            \
  static const bool op##_is_registered = Registrations::Instance().Add( \
      [](pybind11::module_& m) {                                        \
        if (!pybind11::hasattr(m, #op)) m.def(#op, &op##_func);         \
      },                                                                \
      false)

// The form of older projects, with a registration of their own.
#define REG_OLD_GRAPH_MODE_OP(op, InferClass, KernelClass)  \
  namespace mindspore {                                     \
  namespace ops {                                           \
  static InferClass g##op##FuncImplReal;                    \
  OpFuncImpl& gCustom_##op##FuncImpl = g##op##FuncImplReal; \
  }                                                         \
  }                                                         \
  namespace graph_project {                                 \
  using namespace mindspore::kernel;                        \
  MS_CUSTOM_KERNEL_FACTORY_REG("Custom_" #op, KernelClass); \
  }

#define EXTENSION_MODULE_AT(line, m)                                                     \
  static void bind_##line(pybind11::module_&);                                           \
  static const bool is_bound_##line = Registrations::Instance().Add(&bind_##line, true); \
  static void bind_##line(pybind11::module_& m)
#define EXTENSION_MODULE_EXPANDED(line, m) EXTENSION_MODULE_AT(line, m)
#define EXTENSION_MODULE(m) EXTENSION_MODULE_EXPANDED(__LINE__, m)

#endif  // TESTS_GRAPH_PROJECT_MODULE_H_
