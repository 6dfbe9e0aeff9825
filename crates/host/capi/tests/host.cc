// The C++ interface: tainted values, exceptions, ownership.
#include <mullion.hpp>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <mutex>
#include <stdexcept>

#define EXPECT(condition)                                                               \
    do {                                                                                \
        if (!(condition)) {                                                             \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);        \
            std::exit(1);                                                               \
        }                                                                               \
    } while (0)

template <class E, class F>
E thrown(F &&function)
{
    try {
        function();
    } catch (const E &error) {
        return error;
    }
    std::fprintf(stderr, "nothing was thrown\n");
    std::exit(1);
}

template <class F>
mullion_status status_of(F &&function)
{
    return thrown<mullion::error>(std::forward<F>(function)).status();
}

const auto same = [](auto value) { return value; };

// What a host function holds for a call is released when that ends, whatever ends it.
void belongs_to_calls(const mullion::image &image)
{
    std::mutex lock;
    const auto is_free = [&] { return lock.try_lock() && (lock.unlock(), true); };
    std::uint64_t number = 0;
    int seen = 0;
    mullion::imports imports;
    imports
        .add<int(const char *, int, double, float)>(
            "host_report",
            [&](mullion::caller caller, auto text, mullion::tainted<int>, auto, auto) {
                const std::string what = text.copy_and_verify_string(20, same);
                if (what == "begin")
                    return 0;
                EXPECT(is_free() && caller.called_by().number == 0 && caller.handle().number != 0);
                number = caller.hold(std::unique_lock(lock));
                EXPECT(!is_free() && !caller.release(number + 1) && !is_free());
                if (what == "report") {
                    EXPECT(caller.release(mullion::tainted<std::uint64_t>(number)) && is_free());
                    EXPECT(!caller.release(number));
                    number = caller.hold(std::unique_lock(lock));
                    throw std::out_of_range("refused");
                }
                seen++;
                return 7;
            })
        .add<int(std::int64_t, int)>("host_nested", [](mullion::caller caller, auto, auto) {
            caller.charge_output(60);
            return 0;
        });
    mullion::domain domain(image, imports, {}, "holder");
    auto hold = domain.find<void(int *)>("hold_and_write");
    auto place = domain.alloc<int>(1);
    hold(place);
    EXPECT(seen == 1 && is_free() && place.ptr()[0].unverified() == 7);
    EXPECT(thrown<mullion::fault>([&] { hold(nullptr); }).cause() == MULLION_CAUSE_WRITE);
    EXPECT(seen == 2 && is_free());
    domain.restart();
    auto report = domain.find<int(int)>("report");
    EXPECT(thrown<std::out_of_range>([&] { report(1); }).what() == std::string("refused") && is_free());
    EXPECT(status_of([&] { mullion::caller(domain.handle()).hold(5); }) == MULLION_BAD_ARGUMENT);

    // Output that a host function takes.
    mullion::limits limits;
    limits.output = 100;
    mullion::domain loud(image, imports, limits, "loud");
    auto nest = loud.find<int(int)>("nest");
    EXPECT(nest(1).unverified() == 1);
    EXPECT(thrown<mullion::fault>([&] { nest(1); }).cause() == MULLION_CAUSE_OUTPUT);
}

// What a domain's host functions need lives as long as calls are in it, and no longer.
void outlived(const mullion::image &image)
{
    std::unique_ptr<mullion::domain> domain;
    std::weak_ptr<std::string> needed;
    const auto load = [&] {
        auto text = std::make_shared<std::string>(100, 'x');
        needed = text;
        mullion::imports imports;
        imports.add<int()>("host_report", [] { return 0; }).add<int()>("host_nested", [&domain, text] {
            domain.reset();
            return static_cast<int>(text->size());
        });
        return std::make_unique<mullion::domain>(image, imports);
    };
    // Behind a link: the domain goes when the call has returned.
    domain = load();
    mullion::imports linked;
    linked.add<int()>("host_report", [] { return 0; }).link("host_nested", domain->find<int(int)>("nest"));
    {
        mullion::domain caller(image, linked, {}, "caller");
        EXPECT(caller.find<int(int)>("nest")(1).unverified() == 102);
        EXPECT(!domain && needed.expired());
        EXPECT(status_of([&] { caller.find<int(int)>("nest")(1); }) == MULLION_CALLEE);
    }
    // In a call of the host: it stays, since nobody unloads it any more.
    domain = load();
    auto nest = domain->find<int(int)>("nest");
    EXPECT(nest(1).unverified() == 101 && !domain && nest(1).unverified() == 101 && !needed.expired());

    // Functions that were replaced, lists, and domains that were not made, keep nothing.
    auto text = std::make_shared<int>(1);
    {
        mullion::imports imports;
        imports.add<int()>("host_report", [text] { return 0; }).add<int()>("host_report", [text]() -> int { throw *text; });
        EXPECT(text.use_count() == 2);
        EXPECT(status_of([&] { mullion::domain incomplete(image, imports); }) == MULLION_UNKNOWN_IMPORTS);
        imports.add<int()>("host_nested", [text] { return 0; });
        try {
            mullion::domain refused(image, imports);
            EXPECT(!"a constructor is refused");
        } catch (int number) {
            EXPECT(number == 1);
        }
    }
    EXPECT(text.use_count() == 1);

    // A buffer from before a restart is none, and gives nothing back that is another one's.
    mullion::imports imports;
    imports.add<int()>("host_report", [] { return 0; }).add<int()>("host_nested", [] { return 0; });
    mullion::domain fresh(image, imports);
    {
        auto old = std::make_unique<mullion::buffer<char>>(fresh.copy_in(std::string("old")));
        fresh.restart();
        auto own = fresh.copy_in(std::string("own"));
        EXPECT(own.ptr().unverified().address == old->ptr().unverified().address);
        EXPECT(status_of([&] { old->copy_and_verify(same); }) == MULLION_BAD_ADDRESS);
        old.reset();
        auto next = fresh.copy_in(std::string("new"));
        EXPECT(own.ptr().copy_and_verify_string(3, same) == "own");
    }
    // Of a bool in a domain's memory any byte is a value.
    auto two = fresh.copy_in(std::vector<std::uint8_t>{0, 2});
    const mullion::tainted<bool *> bools(fresh.handle(), two.ptr().unverified());
    EXPECT(!bools[0].unverified() && bools[1].unverified() == true);
}

int main(int count, char **words)
{
    EXPECT(count == 2);
    mullion::image image(words[1]);
    std::string reported;
    mullion::imports imports;
    imports
        .add<int(const char *, int, double, float)>(
            "host_report",
            [&](mullion::tainted<const char *> text, mullion::tainted<int> number, mullion::tainted<double> real,
                mullion::tainted<float> single) {
                reported = text.copy_and_verify_string(20, same);
                if (number.unverified() == -1)
                    throw std::out_of_range("minus one");
                return static_cast<int>(number.unverified() + 10 * real.unverified() + 100 * single.unverified());
            })
        .add<int(std::int64_t, int)>("host_nested", [](auto, auto value) { return -value.unverified(); });
    EXPECT(status_of([&] { mullion::domain incomplete(image); }) == MULLION_UNKNOWN_IMPORTS);
    mullion::domain domain(image, imports);
    EXPECT(reported == "begin");

    // Numbers.
    auto add = domain.find<int(int, int)>("add");
    EXPECT(add(-7, 3).unverified() == -4);
    EXPECT(add(add(1, 2), 3).copy_and_verify([](int sum) { return sum * 2; }) == 12);
    EXPECT(domain.find<double(double, float, int)>("scale")(1.5, -2.0f, 4).unverified() == -12);
    EXPECT(domain.find<float(float)>("third")(9.0f).unverified() == 3.0f);
    EXPECT(domain.find<int(int)>("report")(5).unverified() == 5 + 15 + 250);
    EXPECT(domain.find<int(int)>("nest")(5).unverified() == -4);

    // Memory and strings.
    auto total = domain.find<std::int64_t(const std::int64_t *, std::uint64_t)>("total");
    {
        auto list = domain.copy_in(std::vector<std::int64_t>{1, -2, 300});
        EXPECT(total(list, list.size()).unverified() == 299);
        list.ptr().write(1000);
        EXPECT(list.ptr()[0].unverified() == 1000);
        EXPECT((list.ptr() + 2).copy_and_verify(same) == 300);
        EXPECT(list.copy_and_verify([](std::vector<std::int64_t> all) { return all.size(); }) == 3);
        auto text = domain.copy_in(std::string("shout"));
        domain.find<void(char *)>("upper")(text);
        EXPECT(text.ptr().copy_and_verify_string(10, same) == "SHOUT");
        EXPECT(status_of([&] { text.ptr().copy_and_verify_string(4, same); }) == MULLION_LONG_STRING);
    }
    auto name = domain.find<const char *()>("name")();
    EXPECT(!name.is_null() && name.copy_and_verify_string(20, same) == "everything");
    EXPECT(status_of([&] { (name + (1ull << 40))[0]; }) == MULLION_BAD_ADDRESS);

    // What is computed from a domain's numbers is a domain's number.
    {
        using mullion::tainted;
        const tainted<int> five = add(2, 3), most = add(0x7fffffff, 0);
        EXPECT((five * 3 - 5 + five).unverified() == 15 && (-five).unverified() == -5);
        EXPECT((most + 1).unverified() == INT32_MIN && (most * most).unverified() == 1);
        EXPECT(((five & 4) | (five ^ 1)).unverified() == 4 && (~five).unverified() == ~5);
        EXPECT((five < most).unverified() && (five == 5).copy_and_verify(same) && !(five != five).unverified());
        const tainted<std::uint16_t> wide(std::uint16_t{0xffff});
        EXPECT((wide * wide).unverified() == 1 && (wide + std::uint16_t{1}).unverified() == 0);
        EXPECT((tainted<double>(1.5) * 2.0 >= 3.0).unverified());
        // Members, arrays, and functions by pointer.
        struct box {
            std::int32_t width;
            std::uint8_t kind[4];
            double weight;
        };
        auto all = domain.find<box *()>("get_box")();
        EXPECT(all.field(&box::weight)[0].unverified() == 2.5);
        EXPECT(all.field(&box::kind)[2].unverified() == 3);
        EXPECT(all.field(&box::kind).copy_and_verify_range(4, [](auto bytes) { return bytes[3]; }) == 4);
        all.field(&box::width).write(7);
        EXPECT(all[0].field(&box::width).unverified() == 7);
        auto twice = domain.find<int (*())(int)>("get_twice")();
        EXPECT(!twice.is_null() && twice(21).unverified() == 42 && twice(twice(five)).unverified() == 20);
        const tainted<int (*)(int)> wrong(domain.handle(), all.unverified());
        EXPECT(status_of([&] { wrong(1); }) == MULLION_NOT_A_FUNCTION);
    }

    // An exception goes around the domain.
    auto report = domain.find<int(int)>("report");
    EXPECT(thrown<std::out_of_range>([&] { report(-1); }).what() == std::string("minus one"));
    EXPECT(report(0).unverified() == 265);

    belongs_to_calls(image);
    outlived(image);

    // Another domain calls this one.
    {
        mullion::imports linked;
        auto add = domain.find<int(int, int)>("add");
        linked.add<int()>("host_report", [] { return 0; }).link("host_nested", domain.find<int()>("next"));
        mullion::domain caller(image, linked, {}, "caller");
        EXPECT(caller.find<int(int)>("nest")(1).unverified() == 7);
        // An exception goes around both; or a value stands in for it.
        linked.link("host_nested", domain.find<int(int)>("report_minus"), 41);
        mullion::domain careful(image, linked, {}, "careful");
        EXPECT(careful.find<int(int)>("nest")(1).unverified() == 42);
        mullion::imports later;
        later.add<int()>("host_report", [] { return 0; }).link_later("host_nested");
        mullion::domain open(image, later);
        EXPECT(status_of([&] { open.find<int(int)>("nest")(1); }) == MULLION_REFUSED);
        EXPECT(status_of([&] { open.link("host_nested", add, domain.handle()); }) == MULLION_NOT_ALLOWED);
        open.link("host_nested", domain.find<int(int)>("report_minus"));
        EXPECT(thrown<std::out_of_range>([&] { open.find<int(int)>("nest")(1); }).what() == std::string("minus one"));
        EXPECT(status_of([&] { open.link("host_nested", add); }) == MULLION_LINKED);
    }
    domain.restart();

    // Pages of both.
    {
        mullion::domain reader(image, imports, {}, "reader");
        mullion::shared pages("pages", 4096);
        pages.grant(domain, MULLION_READ_WRITE);
        pages.grant(reader, MULLION_READ);
        auto text = pages.ptr<char>(domain, 8);
        text.write('x');
        EXPECT(static_cast<volatile char *>(pages.bytes())[8] == 'x' && pages.size() == 4096);
        EXPECT(pages.ptr<char>(reader, 8)[0].unverified() == 'x');
        auto upper = reader.find<void(char *)>("upper");
        EXPECT(thrown<mullion::fault>([&] { upper(text); }).cause() == MULLION_CAUSE_WRITE);
        domain.find<void(char *)>("upper")(text);
        EXPECT(text[0].unverified() == 'X');
        EXPECT(status_of([&] { pages.grant(domain, MULLION_READ, 0, 8192); }) == MULLION_NOT_SHARED);
    }

    // Limits of a call.
    {
        mullion_call_limits few = MULLION_CALL_LIMITS_DEFAULT;
        few.nanoseconds = 20'000'000;
        // The debug information says void (void).
        EXPECT(thrown<mullion::error>([&] { domain.find<void(int)>("spin"); }).status() == MULLION_WRONG_TYPE);
        {
            auto add = domain.find<int(int, int)>("add").start(2, 3);
            EXPECT(add.wait().copy_and_verify(same) == 5);
            EXPECT(status_of([&] { add.wait(); }) == MULLION_BAD_ARGUMENT);
            auto endless = domain.find<void()>("spin").start();
            EXPECT(status_of([&] { endless.wait(1000 * 1000); }) == MULLION_TIMED_OUT);
            endless.cancel();
            EXPECT(status_of([&] { endless.wait(); }) == MULLION_CANCELLED);
            endless = domain.find<void()>("spin").start();
        }
        EXPECT(mullion_domain_restart_when_idle(domain.handle(), MULLION_NEVER) == MULLION_OK);
        auto spin = domain.find<void()>("spin").limited(few);
        EXPECT(thrown<mullion::fault>([&] { spin(); }).cause() == MULLION_CAUSE_TIME);
        domain.restart();
    }

    // Faults.
    auto crash = domain.find<void(int *)>("crash");
    auto next = domain.find<int()>("next");
    EXPECT(next().unverified() == 6);
    auto fault = thrown<mullion::fault>([&] { crash(nullptr); });
    EXPECT(fault.status() == MULLION_FAULT && fault.cause() == MULLION_CAUSE_WRITE);
    EXPECT(fault.symbol() == "crash" && fault.line() > 0 && fault.file().find("extension.c") != std::string::npos);
    EXPECT(domain.has_ended());
    EXPECT(status_of([&] { next(); }) == MULLION_ENDED);
    domain.restart();
    EXPECT(next().unverified() == 6);

    // Domains of a pool are as new at each use, and go back by themselves.
    {
        mullion::pool pool(image, imports, {}, 2);
        for (int use = 0; use < 5; use++) {
            mullion::pooled one = pool.get();
            auto count = one.find<int()>("next");
            EXPECT(count().unverified() == 6 && count().unverified() == 7);
            mullion::pooled two = pool.get();
            EXPECT(two.find<int()>("next")().unverified() == 6 && one.handle().number != two.handle().number);
            EXPECT(status_of([&] { pool.get(0); }) == MULLION_TIMED_OUT);
        }
        EXPECT(pool.stats().uses == 10 && pool.stats().taken == 0);
        pool.upgrade(image, imports);
        mullion::pooled outlives = pool.get();
        pool = mullion::pool(image, imports);
        EXPECT(outlives.find<int()>("next")().unverified() == 6);
    }

    // A domain is replaced behind a function.
    {
        mullion::live live(mullion::domain(image, imports));
        auto count = live.find<int()>("next");
        EXPECT(count().unverified() == 6 && count().unverified() == 7);
        EXPECT(live.now<const char *()>("name")()[0].unverified() == 'e');
        mullion::domain second(image, imports);
        live.upgrade(std::move(second));
        EXPECT(count().unverified() == 6 && second.handle().number == 0);
        EXPECT(status_of([&] { live.find<int(int)>("next"); }) == MULLION_WRONG_TYPE);
    }

    // Ownership.
    mullion::domain moved = std::move(domain);
    EXPECT(next().unverified() == 7);
    EXPECT(status_of([&] { domain.restart(); }) == MULLION_BAD_HANDLE);
    moved.unload();
    EXPECT(status_of([&] { next(); }) == MULLION_UNLOADED);
    mullion::limits limits;
    limits.nanoseconds = 50'000'000;
    mullion::domain limited(image, imports, limits, "limited");
    auto spin = thrown<mullion::fault>([&] { limited.find<void()>("spin")(); });
    EXPECT(spin.cause() == MULLION_CAUSE_TIME && spin.domain() == "limited");
    std::cout << "all as the header says\n";
}
