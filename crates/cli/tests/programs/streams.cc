// The whole C++ library in a domain: what it prints must be what it prints natively.
#include <atomic>
#include <charconv>
#include <chrono>
#include <clocale>
#include <codecvt>
#include <complex>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <locale>
#include <map>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <optional>
#include <random>
#include <regex>
#include <shared_mutex>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <valarray>
#include <variant>
#include <vector>
#include <cxxabi.h>

static void streams()
{
	std::cout << "streams " << 42 << ' ' << 1.5 << ' ' << std::hex << 255 << std::dec << ' ' << std::boolalpha << true << '\n';
	std::cout << std::setw(8) << std::setfill('*') << 7 << std::setprecision(12) << ' ' << 3.14159265358979 << '\n';
	std::cout << std::scientific << 12345.678 << ' ' << std::fixed << 2.0L / 3 << std::defaultfloat << '\n';
	std::cerr << "to the other stream\n";
	std::istringstream in("17 0x1f 2.75e3 word rest of line\nnext");
	int a, b;
	double d;
	std::string word, line;
	in >> a >> std::hex >> b >> std::dec >> d >> word;
	std::getline(in, line);
	std::cout << a << ' ' << b << ' ' << d << ' ' << word << ':' << line << '|' << '\n';
	in >> a;
	std::cout << in.fail() << in.eof() << '\n';
	std::ostringstream out;
	const time_t day = 86400 * 365;
	out << std::put_time(std::gmtime(&day), "%Y-%m-%d %A") << ' ' << std::quoted("a \"b\"");
	std::cout << out.str() << '\n';
	std::wostringstream wide;
	wide << L"wide " << 12 << L' ' << 0.5;
	std::cout << wide.str().size() << '\n';
	try {
		std::ifstream none("/none/such");
		none.exceptions(std::ios::failbit);
		std::cout << "not reached\n";
	} catch (const std::ios_base::failure &failure) {
		std::cout << "failure: " << failure.what() << ' ' << (failure.code() == std::io_errc::stream) << '\n';
	}
}

static void locales()
{
	std::locale classic;
	std::cout << classic.name() << ' ' << std::use_facet<std::numpunct<char>>(classic).decimal_point() << '\n';
	struct Grouped : std::numpunct<char> {
		char do_thousands_sep() const override { return '.'; }
		std::string do_grouping() const override { return "\3"; }
	};
	std::ostringstream out;
	out.imbue(std::locale(classic, new Grouped));
	out << 1234567;
	std::cout << out.str() << ' ' << std::toupper('x', classic) << std::isalpha('1', classic) << std::isalpha('q', classic) << std::ispunct('!', classic) << '\n';
	try {
		std::locale other("xx_XX");
		std::cout << "not reached\n";
	} catch (const std::runtime_error &error) {
		std::cout << "no such locale\n";
	}
	const auto &collate = std::use_facet<std::collate<char>>(classic);
	std::string a = "abc", b = "abd";
	std::cout << collate.compare(a.data(), a.data() + 3, b.data(), b.data() + 3) << '\n';
	std::wstring_convert<std::codecvt_utf8<char32_t>, char32_t> utf;
	std::cout << utf.from_bytes("a\xc3\xa9\xe2\x82\xac").size() << '\n';
}

static void expressions()
{
	std::regex date(R"((\d{4})-(\d\d)-(\d\d))");
	std::string text = "from 2024-01-31 to 2025-12-01";
	for (auto at = std::sregex_iterator(text.begin(), text.end(), date); at != std::sregex_iterator(); ++at)
		std::cout << (*at)[1] << '/' << (*at)[2] << '/' << (*at)[3] << '\n';
	std::cout << std::regex_replace(text, date, "$3.$2.$1") << '\n';
	try {
		std::regex bad("(");
	} catch (const std::regex_error &error) {
		std::cout << "regex: " << (error.code() == std::regex_constants::error_paren) << '\n';
	}
}

static void numbers()
{
	std::mt19937_64 engine(7);
	std::cout << engine() << ' ' << std::uniform_int_distribution<>(1, 6)(engine) << '\n';
	std::random_device device;
	std::cout << (device() != device() || device() != device()) << '\n';
	char digits[32];
	auto end = std::to_chars(digits, digits + 32, 0.1).ptr;
	std::cout << std::string(digits, end) << ' ';
	double back;
	std::from_chars(digits, end, back);
	std::cout << (back == 0.1) << ' ' << std::complex<double>(1, -2) << '\n';
	std::valarray<int> values = {3, 1, 2};
	std::cout << values.sum() << ' ' << std::to_string(2.5) << ' ' << std::stod("1e3") << '\n';
	try {
		std::stoi("none");
	} catch (const std::invalid_argument &error) {
		std::cout << error.what() << '\n';
	}
}

static void together()
{
	std::mutex mutex;
	std::condition_variable condition;
	std::unique_lock lock(mutex);
	std::cout << (condition.wait_for(lock, std::chrono::milliseconds(2)) == std::cv_status::timeout) << '\n';
	std::timed_mutex timed;
	std::cout << timed.try_lock_for(std::chrono::milliseconds(1)) << timed.try_lock_for(std::chrono::milliseconds(1)) << '\n';
	timed.unlock();
	std::shared_timed_mutex shared;
	std::cout << shared.try_lock_shared_for(std::chrono::milliseconds(1)) << shared.try_lock_until(std::chrono::steady_clock::now()) << '\n';
	shared.unlock_shared();
	std::once_flag once;
	int calls = 0;
	std::call_once(once, [&] { calls++; });
	std::call_once(once, [&] { calls++; });
	std::cout << calls << '\n';
	std::promise<int> promise;
	auto future = promise.get_future();
	promise.set_value(5);
	std::cout << future.get() << ' ' << std::async(std::launch::deferred, [] { return 6; }).get() << '\n';
	try {
		future.get();
	} catch (const std::future_error &error) {
		std::cout << error.code().message() << '\n';
	}
	try {
		lock.lock();
	} catch (const std::system_error &error) {
		std::cout << (error.code() == std::errc::resource_deadlock_would_occur) << '\n';
	}
	std::atomic<std::shared_ptr<int>> pointer(std::make_shared<int>(9));
	std::cout << *pointer.load() << '\n';
	std::atomic<int> counter{1};
	counter.wait(0);
	counter.notify_all();
	std::weak_ptr<int> weak;
	try {
		std::shared_ptr<int> strong(weak);
	} catch (const std::bad_weak_ptr &error) {
		std::cout << error.what() << '\n';
	}
	std::pmr::monotonic_buffer_resource pool;
	std::pmr::vector<int> numbers({1, 2, 3}, &pool);
	std::cout << numbers.size() << '\n';
}

struct Noisy {
	int number;
	explicit Noisy(int n) : number(n) {}
	Noisy(const Noisy &other) : number(other.number) {}
	~Noisy() { std::cout << "gone " << number << '\n'; }
};

static void exceptions()
{
	std::exception_ptr kept;
	try {
		throw Noisy(1);
	} catch (...) {
		kept = std::current_exception();
	}
	std::cout << "kept\n";
	for (int i = 0; i < 2; i++)
		try {
			std::rethrow_exception(kept);
		} catch (const Noisy &noisy) {
			std::cout << "again " << noisy.number << '\n';
		}
	try {
		try {
			std::rethrow_exception(kept);
		} catch (...) {
			throw;
		}
	} catch (Noisy &noisy) {
		noisy.number = 2;
	}
	kept = nullptr;
	std::cout << "let go\n";
	kept = std::make_exception_ptr(std::runtime_error("made"));
	try {
		std::rethrow_exception(kept);
	} catch (const std::exception &error) {
		std::cout << error.what() << '\n';
	}
	try {
		try {
			throw std::runtime_error("inner");
		} catch (...) {
			std::throw_with_nested(std::logic_error("outer"));
		}
	} catch (const std::logic_error &error) {
		std::cout << error.what() << '\n';
		try {
			std::rethrow_if_nested(error);
		} catch (const std::runtime_error &inner) {
			std::cout << inner.what() << '\n';
		}
	}
	int status;
	char *name = abi::__cxa_demangle(typeid(std::map<std::string, int>).name(), nullptr, nullptr, &status);
	std::cout << status << ' ' << (std::string(name).find("map") != std::string::npos) << '\n';
	free(name);
}

int main()
{
	streams();
	locales();
	expressions();
	numbers();
	together();
	exceptions();
	return 0;
}
