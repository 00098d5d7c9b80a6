// shuffle_after_echo: shuffles the copies of fresh elements, holding every
// fresh element once.
//
// The op stands for the echo and the shuffle together: its input is the input
// of the echo. A slot of the buffer holds a fresh element, how many of its
// copies are still to come, and the position from which on the next one may.

#include <algorithm>
#include <deque>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <tuple>
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
#include "tensorflow/core/lib/random/philox_random.h"
#include "tensorflow/core/lib/random/random_distributions.h"
#include "unary_dataset.h"

namespace tfecho {
namespace {

using namespace tensorflow;        // NOLINT
using namespace tensorflow::data;  // NOLINT

constexpr char kStats[] = "stats";
constexpr char kCountsRead[] = "counts_read";
constexpr char kBufferSize[] = "buffer_size";
constexpr char kMinDistance[] = "min_distance";
constexpr char kEnded[] = "ended";
constexpr char kPosition[] = "position";
constexpr char kSeed[] = "seed";
constexpr char kSeed2[] = "seed2";
constexpr char kNumSlots[] = "num_slots";
constexpr char kNumSamples[] = "num_samples";
constexpr char kSlot[] = "slot";
constexpr char kEmpty[] = "empty";

// The random numbers of one iteration; the position in them is one number.
class Randomness {
 public:
  void Start(int64_t seed, int64_t seed2, int64_t num_samples) {
    seed_ = seed;
    seed2_ = seed2;
    num_samples_ = num_samples;
    philox_ = random::PhiloxRandom(seed, seed2);
    // The adapter would draw all of them; a group is skipped at once.
    philox_.Skip(num_samples / kGroup);
    samples_ = random::SingleSampleAdapter<random::PhiloxRandom>(&philox_);
    samples_.Skip(num_samples % kGroup);
  }

  uint32_t Sample() {
    ++num_samples_;
    return samples_();
  }

  // Uniform within [0, n), for n up to 2^32.
  int64_t Below(int64_t n) {
    return static_cast<int64_t>((static_cast<uint64_t>(Sample()) * n) >> 32);
  }

  int64_t seed() const { return seed_; }
  int64_t seed2() const { return seed2_; }
  int64_t num_samples() const { return num_samples_; }

 private:
  static constexpr int kGroup = random::PhiloxRandom::kResultElementCount;

  int64_t seed_ = 0;
  int64_t seed2_ = 0;
  int64_t num_samples_ = 0;
  random::PhiloxRandom philox_;
  random::SingleSampleAdapter<random::PhiloxRandom> samples_{&philox_};
};

struct Slot {
  std::vector<Tensor> element;
  // Copies still to come; an empty slot has none.
  int64_t left = 0;
  // Copies that are out already.
  int64_t emitted = 0;
  // The first position at which the next copy keeps its distance.
  int64_t release = 0;
  // Settles ties once the input has ended.
  int64_t priority = 0;
};

constexpr int64_t kMaxPriority = std::numeric_limits<uint32_t>::max();

// The order in which the slots are emptied once the input has ended: of those
// that keep their distance, the one with most copies left. Where none does,
// the one that has rested longest.
class Emptying {
 public:
  void Start(const std::vector<Slot>& slots) {
    std::vector<std::pair<int64_t, int64_t>> by_release;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (slots[i].left > 0) by_release.emplace_back(slots[i].release, i);
    }
    std::sort(by_release.begin(), by_release.end());
    ready_.clear();
    resting_.clear();
    for (const auto& [release, i] : by_release) resting_.push_back(i);
  }

  void Rest(int64_t i) { resting_.push_back(i); }

  // Takes out the next slot to emit from, or returns -1 if there is none.
  int64_t Next(const std::vector<Slot>& slots, int64_t position) {
    while (!resting_.empty() && slots[resting_.front()].release <= position) {
      const int64_t i = resting_.front();
      ready_.emplace(-slots[i].left, slots[i].priority, i);
      resting_.pop_front();
    }
    if (!ready_.empty()) {
      const int64_t i = std::get<2>(*ready_.begin());
      ready_.erase(ready_.begin());
      return i;
    }
    if (resting_.empty()) return -1;
    const int64_t i = resting_.front();
    resting_.pop_front();
    return i;
  }

 private:
  std::set<std::tuple<int64_t, int64_t, int64_t>> ready_;
  std::deque<int64_t> resting_;  // By release.
};

class ShuffleAfterEchoDatasetOp : public UnaryDatasetOpKernel {
 public:
  explicit ShuffleAfterEchoDatasetOp(OpKernelConstruction* ctx);

 protected:
  void MakeDataset(OpKernelContext* ctx, DatasetBase* input,
                   DatasetBase** output) override;

 private:
  class Dataset;
  Fraction factor_;
  int64_t buffer_size_;
  int64_t min_distance_;
  int64_t stats_id_;
  bool counts_read_;
};

class ShuffleAfterEchoDatasetOp::Dataset : public UnaryDataset {
 public:
  Dataset(OpKernelContext* ctx, const DatasetBase* input, int64_t buffer_size,
          int64_t min_distance, int64_t stats_id, bool counts_read)
      : UnaryDataset(ctx, input),
        buffer_size_(buffer_size),
        min_distance_(min_distance),
        stats_id_(stats_id),
        counts_read_(counts_read),
        stats_(stats_id == 0 ? nullptr : FindStats(stats_id)) {}

  ~Dataset() override {
    if (seeds_ != nullptr) seeds_->Unref();
  }

  absl::Status InitializeInputs(OpKernelContext* ctx, Fraction constant) {
    const Tensor* seeds;
    DatasetBase* dataset;
    TF_RETURN_IF_ERROR(ctx->input("seeds", &seeds));
    TF_RETURN_IF_ERROR(GetDatasetFromVariantTensor(*seeds, &dataset));
    dataset->Ref();
    seeds_ = dataset;
    return factor_.Initialize(ctx, constant);
  }

  std::unique_ptr<IteratorBase> MakeIteratorInternal(
      const std::string& prefix) const override;

  std::string DebugString() const override {
    return absl::StrCat("ShuffleAfterEcho(", buffer_size_, ", ", min_distance_,
                        ")::Dataset");
  }

  int64_t CardinalityInternal(CardinalityOptions options) const override {
    return factor_.Cardinality(input_->Cardinality(options));
  }

 protected:
  absl::Status AsGraphDefInternal(SerializationContext* ctx,
                                  DatasetGraphDefBuilder* b,
                                  Node** output) const override {
    Node *input, *seeds;
    std::vector<Node*> draws;
    std::vector<Node*> variables;
    AttrValue numerator, denominator, num_draws, variable_types;
    AttrValue buffer_size, min_distance, stats, counts_read;
    TF_RETURN_IF_ERROR(b->AddInputDataset(ctx, input_, &input));
    TF_RETURN_IF_ERROR(b->AddInputDataset(ctx, seeds_, &seeds));
    TF_RETURN_IF_ERROR(factor_.AddToGraph(ctx, b, &draws, &variables));
    b->BuildAttrValue(factor_.constant().numerator, &numerator);
    b->BuildAttrValue(factor_.constant().denominator, &denominator);
    b->BuildAttrValue(static_cast<int64_t>(draws.size()), &num_draws);
    b->BuildAttrValue(DataTypeVector(variables.size(), DT_RESOURCE),
                      &variable_types);
    b->BuildAttrValue(buffer_size_, &buffer_size);
    b->BuildAttrValue(min_distance_, &min_distance);
    b->BuildAttrValue(stats_id_, &stats);
    b->BuildAttrValue(counts_read_, &counts_read);
    return b->AddDataset(this, {{0, input}, {1, seeds}},
                         {{2, draws}, {3, variables}},
                         {{"numerator", numerator},
                          {"denominator", denominator},
                          {"num_draws", num_draws},
                          {"Tvariables", variable_types},
                          {kBufferSize, buffer_size},
                          {kMinDistance, min_distance},
                          {kStats, stats},
                          {kCountsRead, counts_read}},
                         output);
  }

 private:
  class Iterator;

  const DatasetBase* seeds_ = nullptr;
  const int64_t buffer_size_;
  const int64_t min_distance_;
  const int64_t stats_id_;
  // Whether nothing upstream counts what is read.
  const bool counts_read_;
  const std::shared_ptr<Stats> stats_;
  Factor factor_;
};

class ShuffleAfterEchoDatasetOp::Dataset::Iterator
    : public DatasetIterator<Dataset> {
 public:
  explicit Iterator(const Params& params)
      : DatasetIterator<Dataset>(params),
        counter_(&dataset()->factor_),
        tally_(MakeTally(dataset()->stats_)) {}

  bool SymbolicCheckpointCompatible() const override { return true; }

  absl::Status Initialize(IteratorContext* ctx) override {
    absl::MutexLock lock(&mu_);
    TF_RETURN_IF_ERROR(dataset()->seeds_->MakeIterator(
        ctx, this, absl::StrCat(prefix(), "[seeds]"), &seeds_));
    int64_t seed = 0, seed2 = 0;
    TF_RETURN_IF_ERROR(NextSeed(ctx, &seed));
    TF_RETURN_IF_ERROR(NextSeed(ctx, &seed2));
    randomness_.Start(seed, seed2, /*num_samples=*/0);
    TF_RETURN_IF_ERROR(counter_.Initialize(ctx, this, prefix()));
    return dataset()->input_->MakeIterator(ctx, this, prefix(), &input_);
  }

  absl::Status GetNextInternal(IteratorContext* ctx,
                               std::vector<Tensor>* out_tensors,
                               bool* end_of_sequence) override {
    absl::MutexLock lock(&mu_);
    if (!keep_changed_) changed_.clear();
    const absl::Status filled = Fill(ctx);
    keep_changed_ = !filled.ok();
    if (!filled.ok()) MarkAllChanged(ctx);
    TF_RETURN_IF_ERROR(filled);
    const int64_t i = Choose();
    *end_of_sequence = i < 0;
    if (i >= 0) Emit(ctx, i, out_tensors);
    return absl::OkStatus();
  }

 protected:
  std::shared_ptr<model::Node> CreateNode(
      IteratorContext* ctx, model::Node::Args args) const override {
    return model::MakeKnownRatioNode(std::move(args),
                                     dataset()->factor_.InputRatio());
  }

  absl::Status SaveInternal(SerializationContext* ctx,
                            IteratorStateWriter* writer) override {
    absl::MutexLock lock(&mu_);
    TF_RETURN_IF_ERROR(WriteVersion(writer, prefix()));
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix(), kBufferSize,
                                           dataset()->buffer_size_));
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix(), kMinDistance,
                                           dataset()->min_distance_));
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix(), kEnded, ended_));
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix(), kPosition, position_));
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix(), kEmpty, empty_));
    TF_RETURN_IF_ERROR(counter_.Save(ctx, prefix(), writer));
    TF_RETURN_IF_ERROR(SaveRandomness(writer));
    TF_RETURN_IF_ERROR(SaveSlots(ctx, writer));
    TF_RETURN_IF_ERROR(SaveInput(ctx, writer, seeds_));
    return SaveInput(ctx, writer, input_);
  }

  absl::Status RestoreInternal(IteratorContext* ctx,
                               IteratorStateReader* reader) override {
    absl::MutexLock lock(&mu_);
    TF_RETURN_IF_ERROR(CheckVersion(reader, prefix()));
    TF_RETURN_IF_ERROR(ReadScalarExpecting(reader, prefix(), kBufferSize,
                                           dataset()->buffer_size_));
    TF_RETURN_IF_ERROR(ReadScalarExpecting(reader, prefix(), kMinDistance,
                                           dataset()->min_distance_));
    TF_RETURN_IF_ERROR(counter_.Restore(ctx, prefix(), reader));
    TF_RETURN_IF_ERROR(RestoreRandomness(reader));
    TF_RETURN_IF_ERROR(RestorePosition(reader));
    TF_RETURN_IF_ERROR(RestoreSlots(ctx, reader));
    TF_RETURN_IF_ERROR(RestoreInput(ctx, reader, seeds_));
    TF_RETURN_IF_ERROR(RestoreInput(ctx, reader, input_));
    if (ended_) emptying_.Start(slots_);
    return absl::OkStatus();
  }

 private:
  absl::Status NextSeed(IteratorContext* ctx, int64_t* seed)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    std::vector<Tensor> element;
    bool end_of_sequence = false;
    TF_RETURN_IF_ERROR(seeds_->GetNext(ctx, &element, &end_of_sequence));
    if (end_of_sequence) return absl::InternalError("The seeds ended");
    *seed = element[0].scalar<int64_t>()();
    return absl::OkStatus();
  }

  // Takes fresh elements until no slot is empty or the input has ended. An
  // error leaves what was taken so far in place.
  absl::Status Fill(IteratorContext* ctx) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    while (!ended_ && (empty_ >= 0 || NumSlots() < dataset()->buffer_size_)) {
      Slot fresh;
      bool end_of_sequence = false;
      TF_RETURN_IF_ERROR(counter_.ReadFactor());
      TF_RETURN_IF_ERROR(
          input_->GetNext(ctx, &fresh.element, &end_of_sequence));
      if (end_of_sequence) {
        EndInput(ctx);
        return absl::OkStatus();
      }
      if (dataset()->counts_read_ && tally_ != nullptr) {
        tally_->Add(Tally::kRead, 1);
      }
      TF_RETURN_IF_ERROR(counter_.Next(ctx, &fresh.left));
      RecordBufferEnqueue(ctx, fresh.element);
      Place(ctx, std::move(fresh));
    }
    return absl::OkStatus();
  }

  void Place(IteratorContext* ctx, Slot fresh)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const int64_t i = empty_ >= 0 ? empty_ : NumSlots();
    if (i == NumSlots()) slots_.emplace_back();
    slots_[i] = std::move(fresh);
    empty_ = -1;
    MarkChanged(ctx, i);
  }

  void EndInput(IteratorContext* ctx) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    ended_ = true;
    for (int64_t i = 0; i < NumSlots(); ++i) {
      slots_[i].priority = randomness_.Sample();
    }
    MarkAllChanged(ctx);
    emptying_.Start(slots_);
  }

  // The slot to emit from; -1 at the end.
  int64_t Choose() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (ended_) return emptying_.Next(slots_, position_);
    // At most `min_distance` - 1 slots rest, which is less than half of them.
    int64_t i;
    do {
      i = randomness_.Below(NumSlots());
    } while (slots_[i].release > position_);
    return i;
  }

  void Emit(IteratorContext* ctx, int64_t i, std::vector<Tensor>* out_tensors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Slot& slot = slots_[i];
    ++slot.emitted;
    if (tally_ != nullptr) tally_->CountEmission(slot.emitted, slot.left - 1);
    ++position_;
    slot.release = position_ + dataset()->min_distance_ - 1;
    if (--slot.left > 0) {
      *out_tensors = slot.element;
      if (ended_) {
        slot.priority = randomness_.Sample();
        emptying_.Rest(i);
      }
    } else {
      RecordBufferDequeue(ctx, slot.element);
      *out_tensors = std::move(slot.element);
      slot.element.clear();
      if (!ended_) empty_ = i;
    }
    MarkChanged(ctx, i);
  }

  int64_t NumSlots() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return static_cast<int64_t>(slots_.size());
  }

  // A symbolic checkpoint is brought up to date after every element, and would
  // cost a copy of the whole buffer each time if it did not know what changed.
  void MarkChanged(IteratorContext* ctx, int64_t i)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (ctx->symbolic_checkpoint()) changed_.insert(i);
  }

  void MarkAllChanged(IteratorContext* ctx)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (int64_t i = 0; i < NumSlots(); ++i) MarkChanged(ctx, i);
  }

  absl::Status SaveSlots(SerializationContext* ctx, IteratorStateWriter* writer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    TF_RETURN_IF_ERROR(writer->WriteScalar(prefix(), kNumSlots, NumSlots()));
    if (ctx->symbolic_checkpoint()) {
      for (int64_t i : changed_) TF_RETURN_IF_ERROR(SaveSlot(i, writer));
      return absl::OkStatus();
    }
    for (int64_t i = 0; i < NumSlots(); ++i) {
      TF_RETURN_IF_ERROR(SaveSlot(i, writer));
    }
    return absl::OkStatus();
  }

  absl::Status SaveSlot(int64_t i, IteratorStateWriter* writer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const Slot& slot = slots_[i];
    const std::string key = absl::StrCat(kSlot, i);
    Tensor state(DT_INT64, {4});
    auto values = state.vec<int64_t>();
    values(0) = slot.left;
    values(1) = slot.emitted;
    values(2) = slot.release;
    values(3) = slot.priority;
    TF_RETURN_IF_ERROR(writer->WriteTensor(prefix(), key, state));
    return WriteElement(writer, prefix(), key, slot.element);
  }

  absl::Status RestorePosition(IteratorStateReader* reader)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    int64_t ended;
    TF_RETURN_IF_ERROR(
        ReadScalarWithin(reader, prefix(), kEnded, 0, 1, &ended));
    ended_ = ended == 1;
    return ReadScalarWithin(reader, prefix(), kPosition, 0, kMaxInt64 / 2,
                            &position_);
  }

  absl::Status RestoreSlots(IteratorContext* ctx, IteratorStateReader* reader)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const int64_t size = dataset()->buffer_size_;
    // Full before anything leaves it.
    const bool was_filled = position_ > 0 && !ended_;
    int64_t num_slots;
    TF_RETURN_IF_ERROR(ReadScalarWithin(reader, prefix(), kNumSlots,
                                        was_filled ? size : 0, size,
                                        &num_slots));
    TF_RETURN_IF_ERROR(ReadScalarWithin(reader, prefix(), kEmpty, -1,
                                        num_slots - 1, &empty_));
    slots_.clear();
    keep_changed_ = true;
    for (int64_t i = 0; i < num_slots; ++i) {
      slots_.emplace_back();
      TF_RETURN_IF_ERROR(RestoreSlot(ctx, reader, i));
    }
    MarkAllChanged(ctx);
    return CheckSlots();
  }

  absl::Status RestoreSlot(IteratorContext* ctx, IteratorStateReader* reader,
                           int64_t i) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    Slot& slot = slots_[i];
    const std::string key = absl::StrCat(kSlot, i);
    std::vector<int64_t> values;
    TF_RETURN_IF_ERROR(ReadNumbers(reader, prefix(), key, 4, &values));
    slot.left = values[0];
    slot.emitted = values[1];
    slot.release = values[2];
    slot.priority = values[3];
    if (!IsPossible(slot)) {
      return Misfit(prefix(), absl::StrCat(key, " can't be there"));
    }
    if (slot.left == 0) return absl::OkStatus();
    return ReadElement(ctx, reader, prefix(), key, *dataset(), &slot.element);
  }

  // Whether an iterator of this dataset may have held `slot`.
  bool IsPossible(const Slot& slot) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const Factor& factor = dataset()->factor_;
    const int64_t most = factor.MostCopies();
    const int64_t furthest =
        slot.emitted > 0 ? position_ + dataset()->min_distance_ - 1 : 0;
    return 0 <= slot.left && slot.left <= most && 0 <= slot.emitted &&
           slot.emitted <= most - slot.left &&
           slot.left + slot.emitted >= factor.FewestCopies() &&
           slot.emitted <= position_ && 0 <= slot.release &&
           slot.release <= furthest && 0 <= slot.priority &&
           slot.priority <= kMaxPriority;
  }

  // Whoever chooses relies on it that only the empty slot has nothing to emit,
  // and that some of the others have rested.
  absl::Status CheckSlots() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (ended_) return absl::OkStatus();
    int64_t resting = 0;
    for (int64_t i = 0; i < NumSlots(); ++i) {
      const bool is_empty = slots_[i].left == 0;
      if (is_empty != (i == empty_)) {
        return Misfit(prefix(),
                      absl::StrCat(kSlot, i, is_empty ? " is" : " is not",
                                   " empty there"));
      }
      if (slots_[i].release > position_) ++resting;
    }
    if (resting < dataset()->min_distance_) return absl::OkStatus();
    return Misfit(prefix(), "has too many slots that rest there");
  }

  absl::Status SaveRandomness(IteratorStateWriter* writer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    TF_RETURN_IF_ERROR(
        writer->WriteScalar(prefix(), kSeed, randomness_.seed()));
    TF_RETURN_IF_ERROR(
        writer->WriteScalar(prefix(), kSeed2, randomness_.seed2()));
    return writer->WriteScalar(prefix(), kNumSamples,
                               randomness_.num_samples());
  }

  absl::Status RestoreRandomness(IteratorStateReader* reader)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    int64_t seed, seed2, num_samples;
    TF_RETURN_IF_ERROR(ReadScalarWithin(reader, prefix(), kSeed, kMinInt64,
                                        kMaxInt64, &seed));
    TF_RETURN_IF_ERROR(ReadScalarWithin(reader, prefix(), kSeed2, kMinInt64,
                                        kMaxInt64, &seed2));
    TF_RETURN_IF_ERROR(ReadScalarWithin(reader, prefix(), kNumSamples, 0,
                                        kMaxInt64, &num_samples));
    randomness_.Start(seed, seed2, num_samples);
    return absl::OkStatus();
  }

  absl::Mutex mu_;
  CopyCounter counter_ ABSL_GUARDED_BY(mu_);
  // Null if nobody wants to know.
  const std::unique_ptr<Tally> tally_ ABSL_GUARDED_BY(mu_);
  // Both are kept when they have done their work: their states hold the seeds
  // of the epochs to come.
  std::unique_ptr<IteratorBase> input_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<IteratorBase> seeds_ ABSL_GUARDED_BY(mu_);
  bool ended_ ABSL_GUARDED_BY(mu_) = false;
  Randomness randomness_ ABSL_GUARDED_BY(mu_);
  std::vector<Slot> slots_ ABSL_GUARDED_BY(mu_);
  // The slot that waits for a fresh element, or -1.
  int64_t empty_ ABSL_GUARDED_BY(mu_) = -1;
  // How many elements were emitted.
  int64_t position_ ABSL_GUARDED_BY(mu_) = 0;
  Emptying emptying_ ABSL_GUARDED_BY(mu_);
  // The slots that a symbolic checkpoint has to be told about.
  std::set<int64_t> changed_ ABSL_GUARDED_BY(mu_);
  // Whether to tell about them once more. `batch` drops what was written while
  // it collected elements if one of them fails: so after a request that fails,
  // these are all slots.
  bool keep_changed_ ABSL_GUARDED_BY(mu_) = false;
};

std::unique_ptr<IteratorBase>
ShuffleAfterEchoDatasetOp::Dataset::MakeIteratorInternal(
    const std::string& prefix) const {
  return std::make_unique<Iterator>(
      Iterator::Params{this, absl::StrCat(prefix, "::ShuffleAfterEcho")});
}

ShuffleAfterEchoDatasetOp::ShuffleAfterEchoDatasetOp(OpKernelConstruction* ctx)
    : UnaryDatasetOpKernel(ctx) {
  OP_REQUIRES_OK(ctx, Factor::ReadAttributes(ctx, &factor_));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kBufferSize, &buffer_size_));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kMinDistance, &min_distance_));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kStats, &stats_id_));
  OP_REQUIRES_OK(ctx, ctx->GetAttr(kCountsRead, &counts_read_));
}

void ShuffleAfterEchoDatasetOp::MakeDataset(OpKernelContext* ctx,
                                            DatasetBase* input,
                                            DatasetBase** output) {
  core::RefCountPtr<Dataset> dataset(
      new Dataset(ctx, input, buffer_size_, min_distance_, stats_id_,
                  counts_read_));
  OP_REQUIRES_OK(ctx, dataset->InitializeInputs(ctx, factor_));
  *output = dataset.release();
}

// The type of the variables is an attribute, as that of an echo.
REGISTER_OP(TFECHO_SHUFFLE_AFTER_ECHO_OP)
    .Input("input_dataset: variant")
    .Input("seeds: variant")
    .Input("draws: num_draws * variant")
    .Input("variables: Tvariables")
    .Output("handle: variant")
    .Attr("numerator: int >= 1")
    .Attr("denominator: int >= 1")
    .Attr("num_draws: int >= 0")
    .Attr("Tvariables: list({resource}) >= 0")
    .Attr("buffer_size: int >= 1")
    .Attr("min_distance: int >= 1")
    .Attr("stats: int")
    .Attr("counts_read: bool")
    .Attr("output_types: list(type) >= 1")
    .Attr("output_shapes: list(shape) >= 1")
    .Attr("metadata: string = ''")
    .SetShapeFn(shape_inference::ScalarShape);

REGISTER_KERNEL_BUILDER(Name(TFECHO_SHUFFLE_AFTER_ECHO_OP).Device(DEVICE_CPU),
                        ShuffleAfterEchoDatasetOp);

}  // namespace
}  // namespace tfecho
