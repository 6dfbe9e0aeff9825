// Clocks.
#include <chrono>
#include <ctime>

namespace std {
namespace chrono {
inline namespace _V2 {

namespace {
nanoseconds read(clockid_t clock)
{
	timespec now;
	clock_gettime(clock, &now);
	return seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}
} // namespace

system_clock::time_point system_clock::now() noexcept { return time_point(read(CLOCK_REALTIME)); }
steady_clock::time_point steady_clock::now() noexcept { return time_point(read(CLOCK_MONOTONIC)); }

} // namespace _V2
} // namespace chrono
} // namespace std
