// echo_on_stall: reads upstream in the background, and emits an element again
// when a request finds nothing fresh.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "checkpoint.h"
#include "names.h"
#include "stall_queue.h"
#include "stats.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "unary_dataset.h"

namespace tfecho {
namespace {

using namespace tensorflow;        // NOLINT
using namespace tensorflow::data;  // NOLINT

constexpr char kStats[] = "stats";
constexpr char kMaxFactor[] = "max_factor";
constexpr char kBufferSize[] = "buffer_size";
constexpr char kRepeatSize[] = "repeat_size";
constexpr char kWarmup[] = "warmup";
constexpr char kEnded[] = "ended";
constexpr char kArrivals[] = "arrivals";
constexpr char kNumFresh[] = "num_fresh";
constexpr char kNumKept[] = "num_kept";
constexpr char kFresh[] = "fresh";
constexpr char kKept[] = "kept";
constexpr char kCode[] = "_code";
constexpr char kMessage[] = "_message";
constexpr char kEmitted[] = "_emitted";
constexpr char kArrival[] = "_arrival";

// What upstream gave: an element, or the error that took its place.
struct Taken {
  absl::Status status;
  std::vector<Tensor> element;
};

using Queue = StallQueue<Taken>;

class EchoOnStallDatasetOp : public UnaryDatasetOpKernel {
 public:
  explicit EchoOnStallDatasetOp(OpKernelConstruction* ctx);

 protected:
  void MakeDataset(OpKernelContext* ctx, DatasetBase* input,
                   DatasetBase** output) override;

 private:
  class Dataset;
  Queue::Limits limits_;
  int64_t stats_id_;
};

class EchoOnStallDatasetOp::Dataset : public UnaryDataset {
 public:
  Dataset(OpKernelContext* ctx, const DatasetBase* input,
          const Queue::Limits& limits, int64_t stats_id)
      : UnaryDataset(ctx, input),
        limits_(limits),
        stats_id_(stats_id),
        stats_(FindStats(stats_id)) {}

  std::unique_ptr<IteratorBase> MakeIteratorInternal(
      const std::string& prefix) const override;

  std::string DebugString() const override {
    return absl::StrCat("EchoOnStall(", limits_.max_factor, ")::Dataset");
  }

  int64_t CardinalityInternal(CardinalityOptions options) const override {
    const int64_t n = input_->Cardinality(options);
    return limits_.max_factor == 1 || n <= 0 ? n : kUnknownCardinality;
  }

 protected:
  absl::Status AsGraphDefInternal(SerializationContext* ctx,
                                  DatasetGraphDefBuilder* b,
                                  Node** output) const override {
    Node* input;
    AttrValue max_factor, buffer_size, repeat_size, warmup, stats;
    TF_RETURN_IF_ERROR(b->AddInputDataset(ctx, input_, &input));
    b->BuildAttrValue(limits_.max_factor, &max_factor);
    b->BuildAttrValue(limits_.buffer_size, &buffer_size);
    b->BuildAttrValue(limits_.repeat_size, &repeat_size);
    b->BuildAttrValue(limits_.warmup, &warmup);
    b->BuildAttrValue(stats_id_, &stats);
    return b->AddDataset(this, {{0, input}}, {},
                         {{kMaxFactor, max_factor},
                          {kBufferSize, buffer_size},
                          {kRepeatSize, repeat_size},
                          {kWarmup, warmup},
                          {kStats, stats}},
                         output);
  }

 private:
  class Iterator;

  const Queue::Limits limits_;
  const int64_t stats_id_;
  const std::shared_ptr<Stats> stats_;
};

class EchoOnStallDatasetOp::Dataset::Iterator
    : public DatasetIterator<Dataset> {
 public:
  explicit Iterator(const Params& params)
      : DatasetIterator<Dataset>(params),
        tally_(dataset()->stats_),
        queue_(dataset()->limits_,
               [this](int64_t copies) { tally_.CountCopies(copies); }) {}

  ~Iterator() override {
    if (stop_cancellation_) stop_cancellation_();
    Cancel();
    absl::MutexLock lock(&mu_);
    producer_.reset();  // Joins it.
  }

  absl::Status Initialize(IteratorContext* ctx) override {
    TF_RETURN_IF_ERROR(ForwardCancellation(ctx->cancellation_manager()));
    IteratorContext::Params params(ctx);
    params.cancellation_manager = &cancellation_;
    IteratorContext cancellable(std::move(params));
    absl::MutexLock lock(&input_mu_);
    TF_RETURN_IF_ERROR(dataset()->input_->MakeIterator(&cancellable, this,
                                                       prefix(), &input_));
    ctx->MergeCheckpoint(cancellable.checkpoint());
    return absl::OkStatus();
  }

  absl::Status GetNextInternal(IteratorContext* ctx,
                               std::vector<Tensor>* out_tensors,
                               bool* end_of_sequence) override {
    EnsureProducer(ctx);
    tally_.AddConcurrently(Tally::kQueued, queue_.num_fresh());
    Taken taken;
    Popped popped = queue_.TryPop(&taken);
    if (popped == Popped::kNothing) {
      RecordStop(ctx);
      popped = queue_.Pop(&taken);
      RecordStart(ctx);
    }
    *end_of_sequence = popped == Popped::kEnd;
    if (popped == Popped::kEnd) return absl::OkStatus();
    if (popped == Popped::kCancelled) {
      return absl::CancelledError("Iterator was cancelled");
    }
    TF_RETURN_IF_ERROR(taken.status);
    if (popped == Popped::kFresh) tally_.AddConcurrently(Tally::kConsumed, 1);
    tally_.AddConcurrently(Tally::kEmitted, 1);
    *out_tensors = std::move(taken.element);
    return absl::OkStatus();
  }

 protected:
  std::shared_ptr<model::Node> CreateNode(
      IteratorContext* ctx, model::Node::Args args) const override {
    return model::MakeAsyncKnownRatioNode(std::move(args), /*ratio=*/1, {});
  }

  // Waits for the element that upstream is at, as `prefetch` does: otherwise it
  // would be in neither state.
  absl::Status SaveInternal(SerializationContext* ctx,
                            IteratorStateWriter* writer) override {
    absl::MutexLock lock(&input_mu_);
    const Queue::State state = queue_.Save();
    TF_RETURN_IF_ERROR(WriteVersion(writer, prefix()));
    TF_RETURN_IF_ERROR(SaveLimits(writer));
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix(), kEnded, state.ended));
    TF_RETURN_IF_ERROR(
        writer->WriteScalar(prefix(), kArrivals, state.arrivals));
    TF_RETURN_IF_ERROR(SaveFresh(state, writer));
    TF_RETURN_IF_ERROR(SaveKept(state, writer));
    return SaveInput(ctx, writer, input_);
  }

  absl::Status RestoreInternal(IteratorContext* ctx,
                               IteratorStateReader* reader) override {
    absl::MutexLock lock(&input_mu_);
    TF_RETURN_IF_ERROR(CheckVersion(reader, prefix()));
    TF_RETURN_IF_ERROR(CheckLimits(reader));
    Queue::State state;
    int64_t ended;
    TF_RETURN_IF_ERROR(
        ReadScalarWithin(reader, prefix(), kEnded, 0, 1, &ended));
    state.ended = ended;
    TF_RETURN_IF_ERROR(ReadScalarWithin(reader, prefix(), kArrivals, 0,
                                        kMaxInt64 / 2, &state.arrivals));
    TF_RETURN_IF_ERROR(RestoreFresh(ctx, reader, &state));
    TF_RETURN_IF_ERROR(RestoreKept(ctx, reader, &state));
    queue_.Restore(std::move(state));
    return RestoreInput(ctx, reader, input_);
  }

 private:
  // Passes a cancellation of the pipeline on to what waits here and upstream.
  absl::Status ForwardCancellation(CancellationManager* outer) {
    if (outer == nullptr) return absl::OkStatus();
    const CancellationToken token = outer->get_cancellation_token();
    if (!outer->RegisterCallback(token, [this] { Cancel(); })) {
      return absl::CancelledError("Iterator was cancelled");
    }
    stop_cancellation_ = [outer, token] { outer->DeregisterCallback(token); };
    return absl::OkStatus();
  }

  void Cancel() {
    cancellation_.StartCancel();
    queue_.Cancel();
  }

  void EnsureProducer(IteratorContext* ctx) {
    absl::MutexLock lock(&mu_);
    if (producer_) return;
    IteratorContext::Params params(ctx);
    params.cancellation_manager = &cancellation_;
    auto producer_ctx = std::make_shared<IteratorContext>(std::move(params));
    producer_ = ctx->StartThread("tfecho_echo_on_stall",
                                 [this, producer_ctx] { Run(*producer_ctx); });
  }

  void Run(IteratorContext& ctx) {
    RecordStart(&ctx);
    bool ended = queue_.Save().ended;
    while (!ended && WaitForRoom(ctx)) {
      // Held from reading to queueing, so that saving finds the element either
      // still upstream or in the queue.
      absl::MutexLock lock(&input_mu_);
      ended = TakeFresh(ctx);
    }
    RecordStop(&ctx);
  }

  bool WaitForRoom(IteratorContext& ctx) {
    RecordStop(&ctx);
    const bool has_room = queue_.WaitForRoom();
    RecordStart(&ctx);
    return has_room;
  }

  // Returns whether the input has ended.
  bool TakeFresh(IteratorContext& ctx)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(input_mu_) {
    Taken taken;
    bool end_of_sequence = false;
    taken.status = input_->GetNext(&ctx, &taken.element, &end_of_sequence);
    if (taken.status.ok() && end_of_sequence) {
      queue_.End();
      return true;
    }
    const bool repeatable = taken.status.ok();
    queue_.Push({std::move(taken), repeatable});
    if (repeatable) tally_.Add(Tally::kRead, 1);
    return false;
  }

  absl::Status SaveLimits(IteratorStateWriter* writer) {
    const Queue::Limits& limits = dataset()->limits_;
    TF_RETURN_IF_ERROR(
        writer->WriteScalar(prefix(), kMaxFactor, limits.max_factor));
    TF_RETURN_IF_ERROR(
        writer->WriteScalar(prefix(), kBufferSize, limits.buffer_size));
    return writer->WriteScalar(prefix(), kRepeatSize, limits.repeat_size);
  }

  absl::Status CheckLimits(IteratorStateReader* reader) {
    const Queue::Limits& limits = dataset()->limits_;
    TF_RETURN_IF_ERROR(
        ReadScalarExpecting(reader, prefix(), kMaxFactor, limits.max_factor));
    TF_RETURN_IF_ERROR(
        ReadScalarExpecting(reader, prefix(), kBufferSize, limits.buffer_size));
    return ReadScalarExpecting(reader, prefix(), kRepeatSize,
                               limits.repeat_size);
  }

  absl::Status SaveFresh(const Queue::State& state,
                         IteratorStateWriter* writer) {
    TF_RETURN_IF_ERROR(writer->WriteScalar(
        prefix(), kNumFresh, static_cast<int64_t>(state.fresh.size())));
    int64_t i = 0;
    for (const Queue::Fresh& fresh : state.fresh) {
      const std::string key = absl::StrCat(kFresh, i++);
      const absl::Status& status = fresh.element.status;
      TF_RETURN_IF_ERROR(writer->WriteScalar(
          prefix(), absl::StrCat(key, kCode),
          static_cast<int64_t>(status.code())));
      if (status.ok()) {
        TF_RETURN_IF_ERROR(
            WriteElement(writer, prefix(), key, fresh.element.element));
      } else {
        TF_RETURN_IF_ERROR(
            writer->WriteScalar(prefix(), absl::StrCat(key, kMessage),
                                tstring(std::string(status.message()))));
      }
    }
    return absl::OkStatus();
  }

  absl::Status RestoreFresh(IteratorContext* ctx, IteratorStateReader* reader,
                            Queue::State* state) {
    int64_t num_fresh;
    TF_RETURN_IF_ERROR(ReadScalarWithin(reader, prefix(), kNumFresh, 0,
                                        dataset()->limits_.buffer_size,
                                        &num_fresh));
    for (int64_t i = 0; i < num_fresh; ++i) {
      const std::string key = absl::StrCat(kFresh, i);
      Taken taken;
      int64_t code;
      TF_RETURN_IF_ERROR(ReadScalarWithin(
          reader, prefix(), absl::StrCat(key, kCode), 0,
          static_cast<int64_t>(absl::StatusCode::kUnauthenticated), &code));
      if (code == 0) {
        TF_RETURN_IF_ERROR(ReadElement(ctx, reader, prefix(), key, *dataset(),
                                       &taken.element));
      } else {
        std::string message;
        TF_RETURN_IF_ERROR(ReadText(reader, prefix(),
                                    absl::StrCat(key, kMessage), &message));
        taken.status =
            absl::Status(static_cast<absl::StatusCode>(code), message);
      }
      state->fresh.push_back({std::move(taken), code == 0});
    }
    return absl::OkStatus();
  }

  absl::Status SaveKept(const Queue::State& state,
                        IteratorStateWriter* writer) {
    TF_RETURN_IF_ERROR(writer->WriteScalar(
        prefix(), kNumKept, static_cast<int64_t>(state.kept.size())));
    int64_t i = 0;
    for (const Queue::Kept& kept : state.kept) {
      const std::string key = absl::StrCat(kKept, i++);
      TF_RETURN_IF_ERROR(writer->WriteScalar(
          prefix(), absl::StrCat(key, kEmitted), kept.emitted));
      TF_RETURN_IF_ERROR(writer->WriteScalar(
          prefix(), absl::StrCat(key, kArrival), kept.arrival));
      TF_RETURN_IF_ERROR(
          WriteElement(writer, prefix(), key, kept.element.element));
    }
    return absl::OkStatus();
  }

  absl::Status RestoreKept(IteratorContext* ctx, IteratorStateReader* reader,
                           Queue::State* state) {
    int64_t num_kept;
    TF_RETURN_IF_ERROR(ReadScalarWithin(reader, prefix(), kNumKept, 0,
                                        dataset()->limits_.repeat_size,
                                        &num_kept));
    std::set<int64_t> arrivals;
    for (int64_t i = 0; i < num_kept; ++i) {
      const std::string key = absl::StrCat(kKept, i);
      Queue::Kept kept;
      // One that was emitted as often as may be is not kept.
      TF_RETURN_IF_ERROR(ReadScalarWithin(
          reader, prefix(), absl::StrCat(key, kEmitted), 1,
          dataset()->limits_.max_factor - 1, &kept.emitted));
      TF_RETURN_IF_ERROR(
          ReadScalarWithin(reader, prefix(), absl::StrCat(key, kArrival), 1,
                           state->arrivals, &kept.arrival));
      // The queue tells what it keeps apart by this.
      if (!arrivals.insert(kept.arrival).second) {
        return Misfit(prefix(), absl::StrCat(key, " is there twice"));
      }
      TF_RETURN_IF_ERROR(ReadElement(ctx, reader, prefix(), key, *dataset(),
                                     &kept.element.element));
      state->kept.push_back(std::move(kept));
    }
    return absl::OkStatus();
  }

  CancellationManager cancellation_;
  std::function<void()> stop_cancellation_;
  Tally tally_;
  Queue queue_;
  // Acquired before the queue's own lock.
  absl::Mutex input_mu_;
  std::unique_ptr<IteratorBase> input_ ABSL_GUARDED_BY(input_mu_);
  absl::Mutex mu_;
  std::unique_ptr<Thread> producer_ ABSL_GUARDED_BY(mu_);
};

std::unique_ptr<IteratorBase>
EchoOnStallDatasetOp::Dataset::MakeIteratorInternal(
    const std::string& prefix) const {
  return std::make_unique<Iterator>(
      Iterator::Params{this, absl::StrCat(prefix, "::EchoOnStall")});
}

EchoOnStallDatasetOp::EchoOnStallDatasetOp(OpKernelConstruction* ctx)
    : UnaryDatasetOpKernel(ctx) {
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kMaxFactor, &limits_.max_factor));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kBufferSize, &limits_.buffer_size));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kRepeatSize, &limits_.repeat_size));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kWarmup, &limits_.warmup));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kStats, &stats_id_));
}

void EchoOnStallDatasetOp::MakeDataset(OpKernelContext* ctx,
                                       DatasetBase* input,
                                       DatasetBase** output) {
  *output = new Dataset(ctx, input, limits_, stats_id_);
}

REGISTER_OP(TFECHO_ECHO_ON_STALL_OP)
    .Input("input_dataset: variant")
    .Output("handle: variant")
    .Attr("max_factor: int >= 1")
    .Attr("buffer_size: int >= 1")
    .Attr("repeat_size: int >= 1")
    .Attr("warmup: int >= 0")
    .Attr("stats: int")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("metadata: string = ''")
    .SetShapeFn(shape_inference::ScalarShape);

REGISTER_KERNEL_BUILDER(Name(TFECHO_ECHO_ON_STALL_OP).Device(DEVICE_CPU),
                        EchoOnStallDatasetOp);

}  // namespace
}  // namespace tfecho
