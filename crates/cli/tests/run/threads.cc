// The C++ library's threads.
#include <atomic>
#include <condition_variable>
#include <future>
#include <iostream>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <vector>

static std::atomic<int> made, gone;

struct Local {
	Local() { made++; }
	~Local() { gone++; }
	int value = 1;
};

static thread_local Local local;

static Local &once()
{
	static Local one;
	return one;
}

int main()
{
	std::mutex mutex;
	std::shared_mutex shared;
	long sum = 0;
	std::vector<std::thread> all;
	for (int i = 0; i < 4; i++)
		all.emplace_back([&] {
			for (int turn = 0; turn < 1000; turn++) {
				std::lock_guard held(mutex);
				sum += local.value;
			}
			std::shared_lock read(shared);
			once();
			try {
				throw sum;
			} catch (long caught) {
				std::lock_guard held(mutex);
				sum += caught > 0;
			}
		});
	for (std::thread &each : all)
		each.join();
	std::cout << sum << ' ' << made << ' ' << gone << '\n';

	auto answer = std::async(std::launch::async, [] {
		std::vector<int> numbers(1000);
		std::iota(numbers.begin(), numbers.end(), 1);
		return std::accumulate(numbers.begin(), numbers.end(), 0);
	});
	std::promise<int> promise;
	std::thread keeps([&] { promise.set_exception(std::make_exception_ptr(std::runtime_error("kept"))); });
	try {
		std::cout << answer.get() << '\n';
		promise.get_future().get();
	} catch (const std::runtime_error &error) {
		std::cout << error.what() << '\n';
	}
	keeps.join();

	std::vector<std::thread> many;
	std::condition_variable released;
	bool go = false;
	try {
		for (;;)
			many.emplace_back([&] {
				std::unique_lock held(mutex);
				released.wait(held, [&] { return go; });
			});
	} catch (const std::system_error &error) {
		std::cout << many.size() << ' ' << (error.code() == std::errc::resource_unavailable_try_again) << '\n';
	}
	{
		std::lock_guard held(mutex);
		go = true;
	}
	released.notify_all();
	for (std::thread &each : many)
		each.join();
}
