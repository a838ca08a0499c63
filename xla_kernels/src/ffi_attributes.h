// ffi_attributes.h: attribute dictionaries of XLA's call frames.
#ifndef MSOPS_FFI_ATTRIBUTES_H_
#define MSOPS_FFI_ATTRIBUTES_H_

#include <optional>

#include "attributes.h"
#include "xla/ffi/api/ffi.h"

// Lets a handler bind `.Attr<msops::Attributes>("name")`: a dictionary whose names and types are
// those of the user's op, where the typed decoders want them known beforehand. Its entries are
//   bool, int64, double                 scalars
//   text                                std::string
//   arrays of int64 or double           vectors
//   {"data": array, "splits": int64s}   vectors of vectors; splits holds the length of each
//   {"0": text, "1": text, ...}         lists of text; of bool likewise
//   any other dictionary                what kernels can ask for by HasAttr only
template <>
struct xla::ffi::AttrDecoding<msops::Attributes> {
  using Type = msops::Attributes;
  static std::optional<Type> Decode(XLA_FFI_AttrType type, void* attr,
                                    DiagnosticEngine& diagnostic);
};

#endif  // MSOPS_FFI_ATTRIBUTES_H_
