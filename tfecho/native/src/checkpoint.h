// Elements and scalars in a checkpoint, checked when they are read back.

#ifndef TFECHO_CHECKPOINT_H_
#define TFECHO_CHECKPOINT_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "tensorflow/core/framework/dataset.h"

namespace tfecho {

inline constexpr int64_t kMinInt64 = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kMaxInt64 = std::numeric_limits<int64_t>::max();

// The error for a checkpoint that `prefix`, an iterator, must not go on from.
absl::Status Misfit(const std::string& prefix, const std::string& what);

// Writes and checks what all other keys mean. Their names and values are those
// of one version; a checkpoint of another one is refused, not interpreted.
absl::Status WriteVersion(tensorflow::data::IteratorStateWriter* writer,
                          const std::string& prefix);
absl::Status CheckVersion(tensorflow::data::IteratorStateReader* reader,
                          const std::string& prefix);

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

// Reads `count` numbers that were written as one tensor.
absl::Status ReadNumbers(tensorflow::data::IteratorStateReader* reader,
                         const std::string& prefix, const std::string& key,
                         int64_t count, std::vector<int64_t>* values);

absl::Status ReadText(tensorflow::data::IteratorStateReader* reader,
                      const std::string& prefix, const std::string& key,
                      std::string* text);

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
