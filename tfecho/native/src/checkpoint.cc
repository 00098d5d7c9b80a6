#include "checkpoint.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tfecho {

using ::tensorflow::DataType;
using ::tensorflow::DataTypeString;
using ::tensorflow::DT_INT64;
using ::tensorflow::DT_STRING;
using ::tensorflow::Tensor;
using ::tensorflow::TensorShape;
using ::tensorflow::data::DatasetBase;
using ::tensorflow::data::IteratorContext;
using ::tensorflow::data::IteratorStateReader;
using ::tensorflow::data::IteratorStateWriter;

namespace {

constexpr char kVersion[] = "tfecho_version";
// What the iterators here write. Goes up whenever that changes its meaning.
constexpr int64_t kCurrentVersion = 1;

std::string ComponentKey(const std::string& key, size_t i) {
  return absl::StrCat(key, "[", i, "]");
}

// Of a key that is missing, TensorFlow says the name and nothing else.
absl::Status Explain(const absl::Status& status, const std::string& prefix,
                     const std::string& key) {
  if (!absl::IsNotFound(status)) return status;
  return Misfit(prefix, absl::StrCat("has no ", key, " there"));
}

// Reads a tensor of one kind. That holds for scalars, too: what TensorFlow has
// for them ends the process if the value is of another kind.
absl::Status ReadTyped(IteratorStateReader* reader, const std::string& prefix,
                       const std::string& key, DataType dtype,
                       const TensorShape& shape, Tensor* tensor) {
  TF_RETURN_IF_ERROR(
      Explain(reader->ReadTensor(prefix, key, tensor), prefix, key));
  if (tensor->dtype() == dtype && tensor->shape() == shape) {
    return absl::OkStatus();
  }
  return Misfit(prefix,
                absl::StrCat(key, " is ", DataTypeString(tensor->dtype()),
                             tensor->shape().DebugString(), " there, not ",
                             DataTypeString(dtype), shape.DebugString()));
}

absl::Status ReadScalar(IteratorStateReader* reader, const std::string& prefix,
                        const std::string& key, int64_t* value) {
  Tensor tensor;
  TF_RETURN_IF_ERROR(
      ReadTyped(reader, prefix, key, DT_INT64, TensorShape({}), &tensor));
  *value = tensor.scalar<int64_t>()();
  return absl::OkStatus();
}

}  // namespace

absl::Status Misfit(const std::string& prefix, const std::string& what) {
  return absl::FailedPreconditionError(absl::StrCat(
      "The checkpoint does not fit this dataset: ", prefix, " ", what));
}

absl::Status WriteVersion(IteratorStateWriter* writer,
                          const std::string& prefix) {
  return writer->WriteScalar(prefix, kVersion, kCurrentVersion);
}

absl::Status CheckVersion(IteratorStateReader* reader,
                          const std::string& prefix) {
  return ReadScalarExpecting(reader, prefix, kVersion, kCurrentVersion);
}

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
    TF_RETURN_IF_ERROR(Explain(
        reader->ReadTensor(ctx->flr(), prefix, component, &components[i]),
        prefix, component));
    if (components[i].dtype() != dtypes[i] ||
        !shapes[i].IsCompatibleWith(components[i].shape())) {
      return Misfit(
          prefix,
          absl::StrCat(component, " is ", DataTypeString(components[i].dtype()),
                       components[i].shape().DebugString(),
                       ", the dataset has ", DataTypeString(dtypes[i]),
                       shapes[i].DebugString()));
    }
  }
  *element = std::move(components);
  return absl::OkStatus();
}

absl::Status ReadNumbers(IteratorStateReader* reader,
                         const std::string& prefix, const std::string& key,
                         int64_t count, std::vector<int64_t>* values) {
  Tensor tensor;
  TF_RETURN_IF_ERROR(
      ReadTyped(reader, prefix, key, DT_INT64, TensorShape({count}), &tensor));
  const auto numbers = tensor.vec<int64_t>();
  values->assign(numbers.data(), numbers.data() + count);
  return absl::OkStatus();
}

absl::Status ReadText(IteratorStateReader* reader, const std::string& prefix,
                      const std::string& key, std::string* text) {
  Tensor tensor;
  TF_RETURN_IF_ERROR(
      ReadTyped(reader, prefix, key, DT_STRING, TensorShape({}), &tensor));
  *text = tensor.scalar<tensorflow::tstring>()();
  return absl::OkStatus();
}

absl::Status ReadScalarWithin(IteratorStateReader* reader,
                              const std::string& prefix,
                              const std::string& key, int64_t low,
                              int64_t high, int64_t* value) {
  TF_RETURN_IF_ERROR(ReadScalar(reader, prefix, key, value));
  if (low <= *value && *value <= high) return absl::OkStatus();
  return Misfit(prefix, absl::StrCat(key, " is ", *value, ", outside of ", low,
                                     " to ", high));
}

absl::Status ReadScalarExpecting(IteratorStateReader* reader,
                                 const std::string& prefix,
                                 const std::string& key, int64_t expected) {
  int64_t value;
  TF_RETURN_IF_ERROR(ReadScalar(reader, prefix, key, &value));
  if (value == expected) return absl::OkStatus();
  return Misfit(prefix, absl::StrCat(key, " is ", value, " there and ",
                                     expected, " here"));
}

}  // namespace tfecho
