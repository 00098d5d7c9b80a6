// The names under which the ops are registered.
//
// TensorFlow's auto-sharder walks from the end of a pipeline up to its files
// and gives up at an op that it does not know; it does know every version of
// its own pass-through ops (<name> or <name>V<digits>). Hence these names: a
// pipeline that echoes is sharded by file like one that repeats, shuffles and
// prefetches. The version is that of the paper, arXiv 1907.05550.

#ifndef TFECHO_NAMES_H_
#define TFECHO_NAMES_H_

namespace tfecho {

#define TFECHO_ECHO_OP "RepeatDatasetV190705550"
#define TFECHO_SHUFFLE_AFTER_ECHO_OP "ShuffleDatasetV190705550"
#define TFECHO_ECHO_ON_STALL_OP "PrefetchDatasetV190705550"
#define TFECHO_MONITOR_OP "AssertNextDatasetV190705550"

}  // namespace tfecho

#endif  // TFECHO_NAMES_H_
