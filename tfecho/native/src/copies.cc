#include "copies.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "checkpoint.h"

namespace tfecho {

using ::tensorflow::DataTypeString;
using ::tensorflow::LookupResource;
using ::tensorflow::Node;
using ::tensorflow::OpInputList;
using ::tensorflow::OpKernelConstruction;
using ::tensorflow::OpKernelContext;
using ::tensorflow::ResourceHandle;
using ::tensorflow::Tensor;
using ::tensorflow::TensorShape;
using ::tensorflow::data::DatasetBase;
using ::tensorflow::data::GetDatasetFromVariantTensor;
using ::tensorflow::data::IteratorBase;
using ::tensorflow::data::IteratorContext;
using ::tensorflow::data::IteratorStateReader;
using ::tensorflow::data::IteratorStateWriter;
using ::tensorflow::data::kInfiniteCardinality;
using ::tensorflow::data::kUnknownCardinality;
using ::tensorflow::data::SerializationContext;

namespace {

constexpr char kNumerator[] = "numerator";
constexpr char kDenominator[] = "denominator";
constexpr char kIsVariable[] = "is_variable";
constexpr char kIsRandom[] = "is_random";
constexpr char kRemainder[] = "remainder";

// A floating-point variable counts in steps of one ten-thousandth.
constexpr int64_t kVariableDenominator = 10'000;
constexpr double kLargestVariable = 1e11;

// Draws are uniform within [0, 2^32).
constexpr int64_t kDrawRange = int64_t{1} << 32;

absl::Status ScalarValue(const Tensor& tensor, double* value) {
  switch (tensor.dtype()) {
    case tensorflow::DT_INT32:
      *value = tensor.scalar<int32_t>()();
      return absl::OkStatus();
    case tensorflow::DT_INT64:
      *value = static_cast<double>(tensor.scalar<int64_t>()());
      return absl::OkStatus();
    case tensorflow::DT_FLOAT:
      *value = tensor.scalar<float>()();
      return absl::OkStatus();
    case tensorflow::DT_DOUBLE:
      *value = tensor.scalar<double>()();
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("`factor`: a variable of dtype ",
                       DataTypeString(tensor.dtype()), " is not supported"));
  }
}

absl::Status FractionFromVariable(const Tensor& tensor, Fraction* factor) {
  double value;
  TF_RETURN_IF_ERROR(ScalarValue(tensor, &value));
  // The negated comparison refuses NaN, too.
  if (!(value >= 1) || value > kLargestVariable) {
    return absl::InvalidArgumentError(
        absl::StrCat("`factor`: the variable must be at least 1 and at most ",
                     kLargestVariable, ", but is ", value));
  }
  if (tensorflow::DataTypeIsInteger(tensor.dtype())) {
    *factor = {static_cast<int64_t>(value), 1};
  } else {
    *factor = {static_cast<int64_t>(std::nearbyint(value * kVariableDenominator)),
               kVariableDenominator};
  }
  return absl::OkStatus();
}

absl::Status AddResource(const ResourceHandle& handle,
                         DatasetBase::DatasetGraphDefBuilder* b,
                         std::vector<Node*>* nodes) {
  Tensor tensor(tensorflow::DT_RESOURCE, TensorShape({}));
  tensor.scalar<ResourceHandle>()() = handle;
  nodes->emplace_back();
  return b->AddTensor(tensor, &nodes->back());
}

}  // namespace

absl::Status Factor::ReadAttributes(OpKernelConstruction* ctx,
                                    Fraction* constant) {
  TF_RETURN_IF_ERROR(ctx->GetAttr(kNumerator, &constant->numerator));
  return ctx->GetAttr(kDenominator, &constant->denominator);
}

absl::Status Factor::Initialize(OpKernelContext* ctx, Fraction constant) {
  constant_ = constant;
  OpInputList draws;
  TF_RETURN_IF_ERROR(ctx->input_list("draws", &draws));
  if (draws.size() > 0) {
    DatasetBase* dataset;
    TF_RETURN_IF_ERROR(GetDatasetFromVariantTensor(draws[0], &dataset));
    dataset->Ref();
    draws_ = dataset;
  }
  OpInputList variables;
  TF_RETURN_IF_ERROR(ctx->input_list("variables", &variables));
  if (variables.size() > 0) {
    handle_ = variables[0].scalar<ResourceHandle>()();
    TF_RETURN_IF_ERROR(LookupResource(ctx, handle_, &variable_));
  }
  return absl::OkStatus();
}

Factor::~Factor() {
  if (draws_ != nullptr) draws_->Unref();
}

absl::Status Factor::Read(Fraction* factor) const {
  if (!is_variable()) {
    *factor = constant_;
    return absl::OkStatus();
  }
  tensorflow::tf_shared_lock lock(*variable_->mu());
  return FractionFromVariable(*variable_->tensor(), factor);
}

int64_t Factor::Cardinality(int64_t n) const {
  if (n <= 0) return n;
  if (draws_ != nullptr || is_variable()) return kUnknownCardinality;
  const __int128 copies =
      static_cast<__int128>(n) * constant_.numerator / constant_.denominator;
  if (copies > kMaxInt64) return kUnknownCardinality;
  return static_cast<int64_t>(copies);
}

int64_t Factor::FewestCopies() const {
  return constant_.numerator / constant_.denominator;
}

int64_t Factor::MostCopies() const {
  if (is_variable()) return static_cast<int64_t>(kLargestVariable) + 1;
  return FewestCopies() + (constant_.denominator > 1 ? 1 : 0);
}

int64_t Factor::RemainderLimit() const {
  if (is_variable()) return kVariableDenominator;
  return draws_ == nullptr ? constant_.denominator : 1;
}

double Factor::InputRatio() const {
  return static_cast<double>(constant_.denominator) / constant_.numerator;
}

absl::Status Factor::AddToGraph(SerializationContext* ctx,
                                DatasetBase::DatasetGraphDefBuilder* b,
                                std::vector<Node*>* draws,
                                std::vector<Node*>* variables) const {
  if (draws_ != nullptr) {
    draws->emplace_back();
    TF_RETURN_IF_ERROR(b->AddInputDataset(ctx, draws_, &draws->back()));
  }
  if (is_variable()) return AddResource(handle_, b, variables);
  return absl::OkStatus();
}

absl::Status CopyCounter::Initialize(IteratorContext* ctx,
                                     const IteratorBase* parent,
                                     const std::string& prefix) {
  if (factor_->draws() == nullptr) return absl::OkStatus();
  return factor_->draws()->MakeIterator(
      ctx, parent, absl::StrCat(prefix, "[draws]"), &draws_);
}

absl::Status CopyCounter::Next(IteratorContext* ctx, int64_t* copies) {
  const auto [p, q] = current_;
  if (draws_ == nullptr) {
    const int64_t sum = remainder_ + p;
    *copies = sum / q;
    remainder_ = sum % q;
    return absl::OkStatus();
  }
  int64_t draw;
  TF_RETURN_IF_ERROR(Draw(ctx, &draw));
  *copies = p / q + (draw * q < (p % q) * kDrawRange ? 1 : 0);
  return absl::OkStatus();
}

absl::Status CopyCounter::SkipDraw(IteratorContext* ctx) {
  int64_t draw;
  return draws_ == nullptr ? absl::OkStatus() : Draw(ctx, &draw);
}

absl::Status CopyCounter::Draw(IteratorContext* ctx, int64_t* draw) {
  std::vector<Tensor> element;
  bool end_of_sequence = false;
  TF_RETURN_IF_ERROR(draws_->GetNext(ctx, &element, &end_of_sequence));
  if (end_of_sequence) return absl::InternalError("The draws ended");
  *draw = element[0].scalar<int64_t>()();
  return absl::OkStatus();
}

absl::Status CopyCounter::Save(SerializationContext* ctx,
                               const std::string& prefix,
                               IteratorStateWriter* writer) const {
  TF_RETURN_IF_ERROR(writer->WriteScalar(prefix, kNumerator,
                                         factor_->constant().numerator));
  TF_RETURN_IF_ERROR(writer->WriteScalar(prefix, kDenominator,
                                         factor_->constant().denominator));
  TF_RETURN_IF_ERROR(
      writer->WriteScalar(prefix, kIsVariable, factor_->is_variable()));
  TF_RETURN_IF_ERROR(
      writer->WriteScalar(prefix, kIsRandom, factor_->draws() != nullptr));
  TF_RETURN_IF_ERROR(writer->WriteScalar(prefix, kRemainder, remainder_));
  if (draws_ == nullptr || ctx->symbolic_checkpoint()) return absl::OkStatus();
  return draws_->Save(ctx, writer);
}

absl::Status CopyCounter::Restore(IteratorContext* ctx,
                                  const std::string& prefix,
                                  IteratorStateReader* reader) {
  TF_RETURN_IF_ERROR(ReadScalarExpecting(reader, prefix, kNumerator,
                                         factor_->constant().numerator));
  TF_RETURN_IF_ERROR(ReadScalarExpecting(reader, prefix, kDenominator,
                                         factor_->constant().denominator));
  TF_RETURN_IF_ERROR(ReadScalarExpecting(reader, prefix, kIsVariable,
                                         factor_->is_variable()));
  TF_RETURN_IF_ERROR(ReadScalarExpecting(reader, prefix, kIsRandom,
                                         factor_->draws() != nullptr));
  TF_RETURN_IF_ERROR(ReadScalarWithin(reader, prefix, kRemainder, 0,
                                      factor_->RemainderLimit() - 1,
                                      &remainder_));
  if (draws_ == nullptr) return absl::OkStatus();
  return draws_->Restore(ctx, reader);
}

}  // namespace tfecho
