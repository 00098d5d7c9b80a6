// Elements and scalars in a checkpoint, checked when they are read back.

#ifndef TFECHO_CHECKPOINT_H_
#define TFECHO_CHECKPOINT_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tensorflow/core/framework/dataset.h"

namespace tfecho {

inline constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

// Writes the tensors of an element as `<key>[0]`, `<key>[1]`, ...
absl::Status WriteElement(tensorflow::data::IteratorStateWriter* writer,
                          const std::string& prefix, const std::string& key,
                          const std::vector<tensorflow::Tensor>& element);

// Reads an element of `dataset` back. Fails where the checkpoint's element is
// not one that the dataset could have produced.
absl::Status ReadElement(tensorflow::data::IteratorContext* ctx,
                         tensorflow::data::IteratorStateReader* reader,
                         const std::string& prefix, const std::string& key,
                         const tensorflow::data::DatasetBase& dataset,
                         std::vector<tensorflow::Tensor>* element);

// Reads a scalar and checks that it lies within [low, high].
absl::Status ReadScalarWithin(tensorflow::data::IteratorStateReader* reader,
                              const std::string& prefix,
                              const std::string& key, int64_t low,
                              int64_t high, int64_t* value);

// Reads a scalar and checks that it is what this dataset was built with.
absl::Status ReadScalarExpecting(tensorflow::data::IteratorStateReader* reader,
                                 const std::string& prefix,
                                 const std::string& key, int64_t expected);

}  // namespace tfecho

#endif  // TFECHO_CHECKPOINT_H_
