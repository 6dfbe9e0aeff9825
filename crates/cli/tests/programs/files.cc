#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

int main(int, char **arguments)
{
	fs::path root = arguments[1];
	fs::create_directories(root / "a/b");
	{
		std::ofstream out(root / "a/file.txt");
		out << "one\ntwo\n" << 3 << std::endl;
	}
	std::fstream both(root / "a/file.txt", std::ios::in | std::ios::out | std::ios::ate);
	std::cout << both.tellg() << '\n';
	both << "four\n";
	both.seekg(0);
	for (std::string line; std::getline(both, line);)
		std::cout << line << '\n';
	fs::copy_file(root / "a/file.txt", root / "a/b/copy");
	fs::rename(root / "a/b/copy", root / "a/b/moved");
	std::vector<std::string> names;
	for (const auto &entry : fs::recursive_directory_iterator(root))
		names.push_back(fs::relative(entry.path(), root).string() + (entry.is_directory() ? "/" : ""));
	std::sort(names.begin(), names.end());
	for (const auto &name : names)
		std::cout << name << '\n';
	std::cout << fs::file_size(root / "a/b/moved") << ' ' << fs::exists(root / "none") << '\n';
	std::error_code code;
	fs::remove(root / "a", code);
	std::cout << (code == std::errc::directory_not_empty) << ' ' << fs::remove_all(root / "a") << '\n';
	try {
		std::cout << fs::file_size(root / "none");
	} catch (const fs::filesystem_error &error) {
		std::cout << (error.code() == std::errc::no_such_file_or_directory) << '\n';
	}
}
