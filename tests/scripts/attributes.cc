// out = scale * x + sum(sizes) + length of name + flag, from attributes read once, in Init.
#include "custom_aot_extra.h"

class Offset : public AotKernelData {
 public:
  float scale;
  float offset;
};

extern "C" int AttributesInit(int* ndims, int64_t** shapes, const char** dtypes, AotExtra* extra) {
  auto* data = new Offset();
  data->scale = extra->Attr<float>("scale");
  data->offset = extra->Attr<std::string>("name").size() + (extra->Attr<bool>("flag") ? 1 : 0);
  for (int64_t size : extra->Attr<std::vector<int64_t>>("sizes")) data->offset += size;
  extra->SetKernelData(data);
  return 0;
}

extern "C" int Attributes(int nparam, void** params, int* ndims, int64_t** shapes,
                          const char** dtypes, void* stream, void* extra) {
  auto* data = static_cast<Offset*>(static_cast<AotExtra*>(extra)->KernelData());
  const float* x = static_cast<const float*>(params[0]);
  float* out = static_cast<float*>(params[1]);
  for (int64_t i = 0; i < shapes[0][0]; ++i) out[i] = data->scale * x[i] + data->offset;
  return 0;
}
