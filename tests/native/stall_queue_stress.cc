// One producer and several consumers on a StallQueue, with a save in between.
// Exits with 0 if every promise was kept.

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>

#include "stall_queue.h"

namespace {

using Queue = tfecho::StallQueue<int64_t>;
using tfecho::Popped;

constexpr int64_t kElements = 20'000;
constexpr int64_t kMaxFactor = 3;

int Check(bool condition, const char* promise) {
  if (!condition) std::fprintf(stderr, "broken: %s\n", promise);
  return condition ? 0 : 1;
}

int RunToTheEnd() {
  std::atomic<int64_t> released{0};
  Queue queue({kMaxFactor, /*buffer_size=*/8, /*repeat_size=*/8, /*warmup=*/4},
              [&](int64_t) { ++released; });
  std::vector<std::atomic<int64_t>> emitted(kElements);
  std::thread producer([&] {
    for (int64_t i = 0; i < kElements && queue.WaitForRoom(); ++i) {
      queue.Push({i, true});
    }
    queue.End();
  });
  std::vector<std::thread> consumers;
  for (int c = 0; c < 3; ++c) {
    consumers.emplace_back([&] {
      int64_t element = -1;
      while (queue.Pop(&element) != Popped::kEnd) ++emitted[element];
    });
  }
  std::thread saver([&] {
    for (int i = 0; i < 200; ++i) queue.Save();
  });
  producer.join();
  for (auto& consumer : consumers) consumer.join();
  saver.join();
  int broken = Check(released == kElements, "every element is released once");
  for (auto& count : emitted) {
    broken += Check(count >= 1, "every element is emitted");
    broken += Check(count <= kMaxFactor, "no element is emitted too often");
  }
  return broken;
}

int CancelWhileWaiting() {
  Queue queue({1, 1, 1, 0}, [](int64_t) {});
  std::thread consumer([&] {
    int64_t element;
    while (queue.Pop(&element) != Popped::kCancelled) {
    }
  });
  std::thread producer([&] {
    for (int64_t i = 0; i < 100 && queue.WaitForRoom(); ++i) {
      queue.Push({i, true});
    }
  });
  queue.Cancel();
  consumer.join();
  producer.join();
  int64_t element;
  return Check(queue.Pop(&element) == Popped::kCancelled,
               "a cancelled queue stays cancelled");
}

}  // namespace

int main() {
  int broken = RunToTheEnd();
  for (int i = 0; i < 50; ++i) broken += CancelWhileWaiting();
  return broken == 0 ? 0 : 1;
}
