// echo: hands out every element of its input several times in a row.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "checkpoint.h"
#include "copies.h"
#include "names.h"
#include "stats.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "unary_dataset.h"

namespace tfecho {
namespace {

using namespace tensorflow;        // NOLINT
using namespace tensorflow::data;  // NOLINT

constexpr char kStats[] = "stats";
constexpr char kCountsRead[] = "counts_read";
constexpr char kExhausted[] = "exhausted";
constexpr char kEmitted[] = "emitted";
constexpr char kLeft[] = "left";
constexpr char kElement[] = "element";
constexpr char kHasElement[] = "has_element";

class EchoDatasetOp : public UnaryDatasetOpKernel {
 public:
  explicit EchoDatasetOp(OpKernelConstruction* ctx);

 protected:
  void MakeDataset(OpKernelContext* ctx, DatasetBase* input,
                   DatasetBase** output) override;

 private:
  class Dataset;
  Fraction factor_;
  int64_t stats_id_;
  bool counts_read_;
};

class EchoDatasetOp::Dataset : public UnaryDataset {
 public:
  Dataset(OpKernelContext* ctx, const DatasetBase* input, int64_t stats_id,
          bool counts_read)
      : UnaryDataset(ctx, input),
        stats_id_(stats_id),
        counts_read_(counts_read),
        stats_(stats_id == 0 ? nullptr : FindStats(stats_id)) {}

  absl::Status InitializeFactor(OpKernelContext* ctx, Fraction constant) {
    return factor_.Initialize(ctx, constant);
  }

  std::unique_ptr<IteratorBase> MakeIteratorInternal(
      const std::string& prefix) const override;

  std::string DebugString() const override {
    return absl::StrCat("Echo(", factor_.constant().numerator, "/",
                        factor_.constant().denominator, ")::Dataset");
  }

  int64_t CardinalityInternal(CardinalityOptions options) const override {
    return factor_.Cardinality(input_->Cardinality(options));
  }

 protected:
  absl::Status AsGraphDefInternal(SerializationContext* ctx,
                                  DatasetGraphDefBuilder* b,
                                  Node** output) const override {
    Node* input;
    std::vector<Node*> draws;
    std::vector<Node*> variables;
    AttrValue numerator, denominator, num_draws, variable_types;
    AttrValue stats, counts_read;
    TF_RETURN_IF_ERROR(b->AddInputDataset(ctx, input_, &input));
    TF_RETURN_IF_ERROR(factor_.AddToGraph(ctx, b, &draws, &variables));
    b->BuildAttrValue(factor_.constant().numerator, &numerator);
    b->BuildAttrValue(factor_.constant().denominator, &denominator);
    b->BuildAttrValue(static_cast<int64_t>(draws.size()), &num_draws);
    b->BuildAttrValue(DataTypeVector(variables.size(), DT_RESOURCE),
                      &variable_types);
    b->BuildAttrValue(stats_id_, &stats);
    b->BuildAttrValue(counts_read_, &counts_read);
    return b->AddDataset(this, {{0, input}}, {{1, draws}, {2, variables}},
                         {{"numerator", numerator},
                          {"denominator", denominator},
                          {"num_draws", num_draws},
                          {"Tvariables", variable_types},
                          {kStats, stats},
                          {kCountsRead, counts_read}},
                         output);
  }

 private:
  class Iterator;

  const int64_t stats_id_;
  // Whether nothing upstream counts what is read.
  const bool counts_read_;
  const std::shared_ptr<Stats> stats_;
  Factor factor_;
};

class EchoDatasetOp::Dataset::Iterator : public DatasetIterator<Dataset> {
 public:
  explicit Iterator(const Params& params)
      : DatasetIterator<Dataset>(params),
        counter_(&dataset()->factor_),
        tally_(MakeTally(dataset()->stats_)) {}

  bool SymbolicCheckpointCompatible() const override { return true; }

  absl::Status Initialize(IteratorContext* ctx) override {
    absl::MutexLock lock(&mu_);
    upstream_ = std::make_unique<MemoryCheckpoint>(ctx->id_registry());
    TF_RETURN_IF_ERROR(counter_.Initialize(ctx, this, prefix()));
    return dataset()->input_->MakeIterator(ctx, this, prefix(), &input_);
  }

  absl::Status GetNextInternal(IteratorContext* ctx,
                               std::vector<Tensor>* out_tensors,
                               bool* end_of_sequence) override {
    absl::MutexLock lock(&mu_);
    *end_of_sequence = false;
    if (left_ == 0) {
      TF_RETURN_IF_ERROR(TakeFresh(ctx, end_of_sequence));
      if (*end_of_sequence) return absl::OkStatus();
    } else if (element_.empty()) {
      TF_RETURN_IF_ERROR(TakeAgain(ctx));
    }
    Emit(ctx, out_tensors);
    return absl::OkStatus();
  }

 protected:
  std::shared_ptr<model::Node> CreateNode(
      IteratorContext* ctx, model::Node::Args args) const override {
    return model::MakeKnownRatioNode(std::move(args),
                                     dataset()->factor_.InputRatio());
  }

  // Symbolically, the element in hand is not written: it is the next one of an
  // upstream whose position is held back until the last copy is out.
  absl::Status SaveInternal(SerializationContext* ctx,
                            IteratorStateWriter* writer) override {
    absl::MutexLock lock(&mu_);
    const bool has_element =
        left_ > 0 && !element_.empty() && !ctx->symbolic_checkpoint();
    TF_RETURN_IF_ERROR(WriteVersion(writer, prefix()));
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix(), kExhausted, exhausted_));
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix(), kLeft, left_));
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix(), kEmitted, emitted_));
    TF_RETURN_IF_ERROR(
        writer->WriteScalar(prefix(), kHasElement, has_element));
    TF_RETURN_IF_ERROR(counter_.Save(ctx, prefix(), writer));
    if (has_element) {
      TF_RETURN_IF_ERROR(WriteElement(writer, prefix(), kElement, element_));
    }
    return SaveInput(ctx, writer, input_);
  }

  absl::Status RestoreInternal(IteratorContext* ctx,
                               IteratorStateReader* reader) override {
    absl::MutexLock lock(&mu_);
    TF_RETURN_IF_ERROR(CheckVersion(reader, prefix()));
    TF_RETURN_IF_ERROR(counter_.Restore(ctx, prefix(), reader));
    TF_RETURN_IF_ERROR(RestoreCounts(reader));
    TF_RETURN_IF_ERROR(RestoreInput(ctx, reader, input_));
    int64_t has_element;
    TF_RETURN_IF_ERROR(ReadScalarWithin(reader, prefix(), kHasElement, 0,
                                        left_ > 0, &has_element));
    element_.clear();
    if (!has_element) return absl::OkStatus();
    return ReadElement(ctx, reader, prefix(), kElement, *dataset(), &element_);
  }

 private:
  absl::Status RestoreCounts(IteratorStateReader* reader)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const Factor& factor = dataset()->factor_;
    int64_t exhausted;
    TF_RETURN_IF_ERROR(
        ReadScalarWithin(reader, prefix(), kExhausted, 0, 1, &exhausted));
    exhausted_ = exhausted == 1;
    TF_RETURN_IF_ERROR(
        ReadScalarWithin(reader, prefix(), kLeft, 0,
                         exhausted_ ? 0 : factor.MostCopies() - 1, &left_));
    // Known once there are copies to come; else nobody asks.
    const bool knows = left_ > 0;
    return ReadScalarWithin(
        reader, prefix(), kEmitted,
        knows ? std::max<int64_t>(factor.FewestCopies() - left_, 1) : 0,
        factor.MostCopies() - left_, &emitted_);
  }

  absl::Status TakeFresh(IteratorContext* ctx, bool* end_of_sequence)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (exhausted_) {
      *end_of_sequence = true;
      return absl::OkStatus();
    }
    if (merge_again_) ctx->MergeCheckpoint(upstream_.get());
    merge_again_ = true;
    TF_RETURN_IF_ERROR(counter_.ReadFactor());
    int64_t copies = 0;
    const absl::Status taken = HoldingUpstream(ctx, [&](IteratorContext* held) {
      TF_RETURN_IF_ERROR(Read(held, &element_, end_of_sequence));
      if (*end_of_sequence) return absl::OkStatus();
      return counter_.Next(held, &copies);
    });
    // With no element in hand there is nothing to hold upstream back for, and
    // a restored iterator should not meet one that failed again.
    if (!taken.ok() || *end_of_sequence) ctx->MergeCheckpoint(upstream_.get());
    TF_RETURN_IF_ERROR(taken);
    merge_again_ = false;
    if (*end_of_sequence) {
      exhausted_ = true;
      return absl::OkStatus();
    }
    left_ = copies;
    emitted_ = 0;
    return absl::OkStatus();
  }

  // Takes the element that was in hand when a symbolic checkpoint was written.
  // Not a part of restoring: upstream may fail where it failed before, which
  // belongs into the stream.
  absl::Status TakeAgain(IteratorContext* ctx)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::vector<Tensor> element;
    bool end_of_sequence = false;
    TF_RETURN_IF_ERROR(HoldingUpstream(ctx, [&](IteratorContext* held) {
      TF_RETURN_IF_ERROR(Read(held, &element, &end_of_sequence));
      return counter_.SkipDraw(held);
    }));
    if (!end_of_sequence) {
      element_ = std::move(element);
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(absl::StrCat(
        "The checkpoint does not fit this dataset: the input of ", prefix(),
        " ends before the element that was being echoed"));
  }

  absl::Status Read(IteratorContext* ctx, std::vector<Tensor>* element,
                    bool* end_of_sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    TF_RETURN_IF_ERROR(input_->GetNext(ctx, element, end_of_sequence));
    const bool counts = dataset()->counts_read_ && tally_ != nullptr;
    if (counts && !*end_of_sequence) tally_->Add(Tally::kRead, 1);
    return absl::OkStatus();
  }

  // Runs `take` so that the new position of upstream reaches the checkpoint
  // only together with the last copy.
  template <typename Take>
  absl::Status HoldingUpstream(IteratorContext* ctx, Take take)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (!ctx->symbolic_checkpoint()) return take(ctx);
    IteratorContext held(*ctx);
    const absl::Status status = take(&held);
    upstream_->Merge(held.checkpoint());
    return status;
  }

  void Emit(IteratorContext* ctx, std::vector<Tensor>* out_tensors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ++emitted_;
    --left_;
    if (tally_ != nullptr) tally_->CountEmission(emitted_, left_);
    if (left_ > 0) {
      *out_tensors = element_;
      return;
    }
    *out_tensors = std::move(element_);
    element_.clear();
    ctx->MergeCheckpoint(upstream_.get());
  }

  absl::Mutex mu_;
  CopyCounter counter_ ABSL_GUARDED_BY(mu_);
  // Null if nobody wants to know.
  const std::unique_ptr<Tally> tally_ ABSL_GUARDED_BY(mu_);
  // Kept when it has ended: its state holds the seeds of the epochs to come.
  std::unique_ptr<IteratorBase> input_ ABSL_GUARDED_BY(mu_);
  bool exhausted_ ABSL_GUARDED_BY(mu_) = false;
  std::vector<Tensor> element_ ABSL_GUARDED_BY(mu_);
  int64_t left_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t emitted_ ABSL_GUARDED_BY(mu_) = 0;
  // What upstream has written, up to the element in hand.
  std::unique_ptr<MemoryCheckpoint> upstream_ ABSL_GUARDED_BY(mu_);
  // Whether the last fresh element failed. `batch` drops what was written while
  // it collected elements if one of them fails.
  bool merge_again_ ABSL_GUARDED_BY(mu_) = false;
};

std::unique_ptr<IteratorBase> EchoDatasetOp::Dataset::MakeIteratorInternal(
    const std::string& prefix) const {
  return std::make_unique<Iterator>(
      Iterator::Params{this, absl::StrCat(prefix, "::Echo")});
}

EchoDatasetOp::EchoDatasetOp(OpKernelConstruction* ctx)
    : UnaryDatasetOpKernel(ctx) {
  OP_REQUIRES_OK(ctx, Factor::ReadAttributes(ctx, &factor_));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kStats, &stats_id_));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kCountsRead, &counts_read_));
}

void EchoDatasetOp::MakeDataset(OpKernelContext* ctx, DatasetBase* input,
                                DatasetBase** output) {
  core::RefCountPtr<Dataset> dataset(
      new Dataset(ctx, input, stats_id_, counts_read_));
  OP_REQUIRES_OK(ctx, dataset->InitializeFactor(ctx, factor_));
  *output = dataset.release();
}

// The type of the variables is an attribute: an op that is declared to take a
// resource counts as stateful, with or without a variable, and a pipeline that
// echoes inside of `interleave` could not be saved.
REGISTER_OP(TFECHO_ECHO_OP)
    .Input("input_dataset: variant")
    .Input("draws: num_draws * variant")
    .Input("variables: Tvariables")
    .Output("handle: variant")
    .Attr("numerator: int >= 1")
    .Attr("denominator: int >= 1")
    .Attr("num_draws: int >= 0")
    .Attr("Tvariables: list({resource}) >= 0")
    .Attr("stats: int")
    .Attr("counts_read: bool")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("metadata: string = ''")
    .SetShapeFn(shape_inference::ScalarShape);

REGISTER_KERNEL_BUILDER(Name(TFECHO_ECHO_OP).Device(DEVICE_CPU),
                        EchoDatasetOp);

}  // namespace
}  // namespace tfecho
