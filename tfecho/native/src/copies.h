// How often a fresh element is emitted.
//
// The echoing factor is a fraction p/q, constant or read from a variable for
// every fresh element. What lies between two whole numbers of copies is
// settled by a remainder that is carried on (even rounding: element i gets
// floor((i + 1) p / q) - floor(i p / q) copies), or by a draw (random
// rounding).

#ifndef TFECHO_COPIES_H_
#define TFECHO_COPIES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tensorflow/core/framework/dataset.h"
#include "tensorflow/core/framework/resource_handle.h"
#include "tensorflow/core/framework/resource_mgr.h"
#include "tensorflow/core/framework/resource_var.h"

namespace tfecho {

struct Fraction {
  int64_t numerator = 1;
  int64_t denominator = 1;
};

// The echoing factor of a dataset.
class Factor {
 public:
  // Reads the attributes `numerator` and `denominator`.
  static absl::Status ReadAttributes(tensorflow::OpKernelConstruction* ctx,
                                     Fraction* constant);

  // Reads the inputs `draws` and `variables`: none or one of each.
  absl::Status Initialize(tensorflow::OpKernelContext* ctx, Fraction constant);

  ~Factor();

  // The factor for the next fresh element.
  absl::Status Read(Fraction* factor) const;

  // How many elements `n` fresh ones become, or one of the constants that
  // tf.data has for what is not known.
  int64_t Cardinality(int64_t n) const;

  // How many copies of one element there are at least and at most.
  int64_t FewestCopies() const;
  int64_t MostCopies() const;

  // What even rounding can carry over lies below this.
  int64_t RemainderLimit() const;

  // Fresh elements per emitted one, as far as known.
  double InputRatio() const;

  const Fraction& constant() const { return constant_; }

  bool is_variable() const { return variable_ != nullptr; }

  // A dataset of uniform numbers within [0, 2^32); null with even rounding.
  const tensorflow::data::DatasetBase* draws() const { return draws_; }

  absl::Status AddToGraph(
      tensorflow::data::SerializationContext* ctx,
      tensorflow::data::DatasetBase::DatasetGraphDefBuilder* b,
      std::vector<tensorflow::Node*>* draws,
      std::vector<tensorflow::Node*>* variables) const;

 private:
  Fraction constant_;
  const tensorflow::data::DatasetBase* draws_ = nullptr;
  tensorflow::ResourceHandle handle_;
  tensorflow::core::RefCountPtr<tensorflow::Var> variable_;
};

// The position of one iterator in the sequence of copy counts. Its owner
// guards it.
class CopyCounter {
 public:
  explicit CopyCounter(const Factor* factor) : factor_(factor) {}

  absl::Status Initialize(tensorflow::data::IteratorContext* ctx,
                          const tensorflow::data::IteratorBase* parent,
                          const std::string& prefix);

  // Reads the factor. Comes before its fresh element is taken from upstream, so
  // that a factor that is refused costs no element.
  absl::Status ReadFactor() { return factor_->Read(&current_); }

  // Counts the copies of the fresh element just taken, at least one.
  absl::Status Next(tensorflow::data::IteratorContext* ctx, int64_t* copies);

  // Passes over the draw of an element whose copies are known already.
  absl::Status SkipDraw(tensorflow::data::IteratorContext* ctx);

  absl::Status Save(tensorflow::data::SerializationContext* ctx,
                    const std::string& prefix,
                    tensorflow::data::IteratorStateWriter* writer) const;
  absl::Status Restore(tensorflow::data::IteratorContext* ctx,
                       const std::string& prefix,
                       tensorflow::data::IteratorStateReader* reader);

 private:
  absl::Status Draw(tensorflow::data::IteratorContext* ctx, int64_t* draw);

  const Factor* const factor_;
  Fraction current_;
  int64_t remainder_ = 0;
  std::unique_ptr<tensorflow::data::IteratorBase> draws_;
};

}  // namespace tfecho

#endif  // TFECHO_COPIES_H_
