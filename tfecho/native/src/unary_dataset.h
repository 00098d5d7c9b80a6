// What the datasets of all ops here have in common: one input, whose elements
// they hand on as they are.

#ifndef TFECHO_UNARY_DATASET_H_
#define TFECHO_UNARY_DATASET_H_

#include <vector>

#include "tensorflow/core/framework/dataset.h"

namespace tfecho {

class UnaryDataset : public tensorflow::data::DatasetBase {
 public:
  UnaryDataset(tensorflow::OpKernelContext* ctx,
               const tensorflow::data::DatasetBase* input)
      : DatasetBase(tensorflow::data::DatasetContext(ctx)), input_(input) {
    input_->Ref();
  }

  ~UnaryDataset() override { input_->Unref(); }

  const tensorflow::DataTypeVector& output_dtypes() const override {
    return input_->output_dtypes();
  }

  const std::vector<tensorflow::PartialTensorShape>& output_shapes()
      const override {
    return input_->output_shapes();
  }

  absl::Status InputDatasets(
      std::vector<const DatasetBase*>* inputs) const override {
    inputs->push_back(input_);
    return absl::OkStatus();
  }

  absl::Status CheckExternalState() const override {
    return input_->CheckExternalState();
  }

 protected:
  const DatasetBase* const input_;
};

}  // namespace tfecho

#endif  // TFECHO_UNARY_DATASET_H_
