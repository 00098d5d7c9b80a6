// One producer and several consumers on a StallQueue, with a save in between.
// Exits with 0 if every promise was kept.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "stall_queue.h"

namespace {

using Queue = tfecho::StallQueue<int64_t>;
using tfecho::Popped;

constexpr int64_t kElements = 20'000;
constexpr int64_t kMaxFactor = 3;
// What takes longer has hung.
constexpr std::chrono::seconds kPatience{30};

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

// One element for all who wait, and no other behind it.
int RepeatForAllWhoWait() {
  Queue queue({kMaxFactor, /*buffer_size=*/1, /*repeat_size=*/1, /*warmup=*/0},
              [](int64_t) {});
  std::atomic<int64_t> started{0};
  std::vector<std::future<void>> consumers;
  for (int c = 0; c < kMaxFactor; ++c) {
    consumers.push_back(std::async(std::launch::async, [&] {
      int64_t element;
      ++started;
      queue.Pop(&element);
    }));
  }
  while (started < kMaxFactor) std::this_thread::yield();
  queue.Push({0, true});
  bool all_served = true;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (auto& consumer : consumers) {
    all_served &= consumer.wait_until(deadline) == std::future_status::ready;
  }
  queue.Cancel();
  return Check(all_served, "whoever waits is given what may be repeated");
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
  for (int i = 0; i < 50 && broken == 0; ++i) broken += RepeatForAllWhoWait();
  return broken == 0 ? 0 : 1;
}
