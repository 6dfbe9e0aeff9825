// A C++ exception that leaves a host function, which the header forbids: the process ends, and says why.
#include <csignal>
#include <cstdio>
#include <mullion.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

static mullion_status thrown(mullion_domain, void *, const mullion_arguments *, mullion_value *)
{
    throw std::runtime_error("thrown by a host function");
}

static int host(const char *path)
{
    mullion_image image;
    mullion_domain domain;
    mullion_imports list;
    mullion_imports_new(&list);
    mullion_imports_add(list, "host_report", thrown, nullptr);
    mullion_imports_add(list, "host_nested", thrown, nullptr);
    try {
        // Its constructor calls the function.
        return mullion_image_open(path, &image) || mullion_domain_load(image, nullptr, list, nullptr, &domain) ? 2 : 3;
    } catch (...) {
        return 4;
    }
}

int main(int, char **arguments)
{
    int pipes[2], status;
    if (pipe(pipes))
        return 1;
    const pid_t child = fork();
    if (!child) {
        dup2(pipes[1], 2);
        _exit(host(arguments[1]));
    }
    close(pipes[1]);
    std::string said;
    char part[512];
    for (ssize_t count; (count = read(pipes[0], part, sizeof part)) > 0;)
        said.append(part, static_cast<size_t>(count));
    if (waitpid(child, &status, 0) != child)
        return 1;
    const bool named = said.find("foreign exception") != std::string::npos;
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !named) {
        std::fprintf(stderr, "it ended with %x: %s\n", static_cast<unsigned>(status), said.c_str());
        return 1;
    }
    std::puts("all as the header says");
    return 0;
}
