// Counts and times what passes, and changes nothing.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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
constexpr char kTrainer[] = "trainer";

// Of a clock that nobody sets.
int64_t NowNanos() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

class MonitorDatasetOp : public UnaryDatasetOpKernel {
 public:
  explicit MonitorDatasetOp(OpKernelConstruction* ctx);

 protected:
  void MakeDataset(OpKernelContext* ctx, DatasetBase* input,
                   DatasetBase** output) override;

 private:
  class Dataset;
  int64_t stats_id_;
  bool trainer_;
};

class MonitorDatasetOp::Dataset : public UnaryDataset {
 public:
  Dataset(OpKernelContext* ctx, const DatasetBase* input, int64_t stats_id,
          bool trainer)
      : UnaryDataset(ctx, input),
        stats_id_(stats_id),
        trainer_(trainer),
        stats_(FindStats(stats_id)) {}

  std::unique_ptr<IteratorBase> MakeIteratorInternal(
      const std::string& prefix) const override;

  std::string DebugString() const override {
    return trainer_ ? "Monitor(trainer)::Dataset" : "Monitor(source)::Dataset";
  }

  int64_t CardinalityInternal(CardinalityOptions options) const override {
    return input_->Cardinality(options);
  }

 protected:
  absl::Status AsGraphDefInternal(SerializationContext* ctx,
                                  DatasetGraphDefBuilder* b,
                                  Node** output) const override {
    Node* input;
    AttrValue stats, trainer;
    TF_RETURN_IF_ERROR(b->AddInputDataset(ctx, input_, &input));
    b->BuildAttrValue(stats_id_, &stats);
    b->BuildAttrValue(trainer_, &trainer);
    return b->AddDataset(this, {{0, input}}, {},
                         {{kStats, stats}, {kTrainer, trainer}}, output);
  }

 private:
  class Iterator;

  const int64_t stats_id_;
  // Whether the requests come from the trainer, and are timed; otherwise this
  // is the source of an echo, and its elements are counted as read.
  const bool trainer_;
  const std::shared_ptr<Stats> stats_;
};

class MonitorDatasetOp::Dataset::Iterator : public DatasetIterator<Dataset> {
 public:
  explicit Iterator(const Params& params)
      : DatasetIterator<Dataset>(params), tally_(dataset()->stats_) {}

  bool SymbolicCheckpointCompatible() const override { return true; }

  absl::Status Initialize(IteratorContext* ctx) override {
    return dataset()->input_->MakeIterator(ctx, this, prefix(), &input_);
  }

  absl::Status GetNextInternal(IteratorContext* ctx,
                               std::vector<Tensor>* out_tensors,
                               bool* end_of_sequence) override {
    if (dataset()->trainer_) return Time(ctx, out_tensors, end_of_sequence);
    TF_RETURN_IF_ERROR(input_->GetNext(ctx, out_tensors, end_of_sequence));
    if (!*end_of_sequence) tally_.AddConcurrently(Tally::kRead, 1);
    return absl::OkStatus();
  }

 protected:
  std::shared_ptr<model::Node> CreateNode(
      IteratorContext* ctx, model::Node::Args args) const override {
    return model::MakeKnownRatioNode(std::move(args), /*ratio=*/1);
  }

  absl::Status SaveInternal(SerializationContext* ctx,
                            IteratorStateWriter* writer) override {
    return SaveInput(ctx, writer, input_);
  }

  absl::Status RestoreInternal(IteratorContext* ctx,
                               IteratorStateReader* reader) override {
    return RestoreInput(ctx, reader, input_);
  }

 private:
  // Times how long the trainer waits for an element, and how long it then goes
  // without asking for another.
  absl::Status Time(IteratorContext* ctx, std::vector<Tensor>* out_tensors,
                    bool* end_of_sequence) {
    const int64_t asked = NowNanos();
    const int64_t served = last_served_.load(std::memory_order_relaxed);
    if (served > 0) tally_.AddConcurrently(Tally::kThinkNanos, asked - served);
    TF_RETURN_IF_ERROR(input_->GetNext(ctx, out_tensors, end_of_sequence));
    const int64_t now = NowNanos();
    last_served_.store(now, std::memory_order_relaxed);
    tally_.AddConcurrently(Tally::kWaitNanos, now - asked);
    if (!*end_of_sequence) tally_.AddConcurrently(Tally::kRequests, 1);
    return absl::OkStatus();
  }

  Tally tally_;
  std::unique_ptr<IteratorBase> input_;
  std::atomic<int64_t> last_served_{0};
};

std::unique_ptr<IteratorBase> MonitorDatasetOp::Dataset::MakeIteratorInternal(
    const std::string& prefix) const {
  // Leaves no trace in the names of the iterators above, so that checkpoints
  // fit whether or not somebody counts.
  return std::make_unique<Iterator>(Iterator::Params{this, prefix});
}

MonitorDatasetOp::MonitorDatasetOp(OpKernelConstruction* ctx)
    : UnaryDatasetOpKernel(ctx) {
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kStats, &stats_id_));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kTrainer, &trainer_));
}

void MonitorDatasetOp::MakeDataset(OpKernelContext* ctx, DatasetBase* input,
                                   DatasetBase** output) {
  *output = new Dataset(ctx, input, stats_id_, trainer_);
}

REGISTER_OP(TFECHO_MONITOR_OP)
    .Input("input_dataset: variant")
    .Output("handle: variant")
    .Attr("stats: int")
    .Attr("trainer: bool")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("metadata: string = ''")
    .SetShapeFn(shape_inference::ScalarShape);

REGISTER_KERNEL_BUILDER(Name(TFECHO_MONITOR_OP).Device(DEVICE_CPU),
                        MonitorDatasetOp);

}  // namespace
}  // namespace tfecho
