#include "checkpoint.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tfecho {

using ::tensorflow::DataTypeString;
using ::tensorflow::Tensor;
using ::tensorflow::data::DatasetBase;
using ::tensorflow::data::IteratorContext;
using ::tensorflow::data::IteratorStateReader;
using ::tensorflow::data::IteratorStateWriter;

namespace {

std::string ComponentKey(const std::string& key, size_t i) {
  return absl::StrCat(key, "[", i, "]");
}

}  // namespace

absl::Status WriteElement(IteratorStateWriter* writer,
                          const std::string& prefix, const std::string& key,
                          const std::vector<Tensor>& element) {
  for (size_t i = 0; i < element.size(); ++i) {
    TF_RETURN_IF_ERROR(
        writer->WriteTensor(prefix, ComponentKey(key, i), element[i]));
  }
  return absl::OkStatus();
}

absl::Status ReadElement(IteratorContext* ctx, IteratorStateReader* reader,
                         const std::string& prefix, const std::string& key,
                         const DatasetBase& dataset,
                         std::vector<Tensor>* element) {
  const auto& dtypes = dataset.output_dtypes();
  const auto& shapes = dataset.output_shapes();
  std::vector<Tensor> components(dtypes.size());
  for (size_t i = 0; i < dtypes.size(); ++i) {
    const std::string component = ComponentKey(key, i);
    TF_RETURN_IF_ERROR(
        reader->ReadTensor(ctx->flr(), prefix, component, &components[i]));
    if (components[i].dtype() != dtypes[i] ||
        !shapes[i].IsCompatibleWith(components[i].shape())) {
      return absl::FailedPreconditionError(absl::StrCat(
          "The checkpoint does not fit this dataset: ", prefix, " ", component,
          " is ", DataTypeString(components[i].dtype()),
          components[i].shape().DebugString(), ", the dataset has ",
          DataTypeString(dtypes[i]), shapes[i].DebugString()));
    }
  }
  *element = std::move(components);
  return absl::OkStatus();
}

absl::Status ReadScalarWithin(IteratorStateReader* reader,
                              const std::string& prefix,
                              const std::string& key, int64_t low,
                              int64_t high, int64_t* value) {
  TF_RETURN_IF_ERROR(reader->ReadScalar(prefix, key, value));
  if (*value < low || *value > high) {
    return absl::FailedPreconditionError(
        absl::StrCat("The checkpoint does not fit this dataset: ", prefix, " ",
                     key, " is ", *value, ", outside of ", low, " to ", high));
  }
  return absl::OkStatus();
}

absl::Status ReadScalarExpecting(IteratorStateReader* reader,
                                 const std::string& prefix,
                                 const std::string& key, int64_t expected) {
  int64_t value;
  TF_RETURN_IF_ERROR(reader->ReadScalar(prefix, key, &value));
  if (value != expected) {
    return absl::FailedPreconditionError(
        absl::StrCat("The checkpoint does not fit this dataset: ", prefix, " ",
                     key, " is ", value, " there and ", expected, " here"));
  }
  return absl::OkStatus();
}

}  // namespace tfecho
