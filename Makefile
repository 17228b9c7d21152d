# A short front for the CMake presets. `make help` lists what there is.
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60

# Configures the build of a preset; what CMake says is shown only when it fails.
configure = mkdir -p build && { cmake --preset $(1) $(2) >build/configure-$(1).log 2>&1 || { cat build/configure-$(1).log; exit 1; }; }

.DEFAULT_GOAL := build
.PHONY: help build program test demo package package-test check-format check-tidy sizes bench asan tsan fuzz coverage tidy format clean packages-build packages-test packages-check packages-dev packages-package

help: ## This list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST)

packages-build packages-test packages-check packages-dev packages-package: packages-%:
	@scripts/install-packages $*

build: packages-build ## Install what is missing and build (build/release)
	@$(call configure,release,)
	@cmake --build --preset release -j $(JOBS)

test: packages-build packages-test ## Build and run every test
	@$(call configure,release,)
	@cmake --build --preset release -j $(JOBS) --target all_tests
	@ctest --preset release

program: packages-build ## Build the program alone
	@$(call configure,release,)
	@cmake --build --preset release -j $(JOBS) --target crossdock

demo: program ## Show what the program does, on a real model
	@scripts/demo build/release/cli/crossdock

package: build packages-package ## Debian packages of the program and of the libraries (build/release/packages)
	@rm -rf build/release/packages; cd build/release && cpack -B packages >packages.log 2>&1 || { cat packages.log; exit 1; }
	@ls build/release/packages/*.deb

package-test: package ## Install the program's package into a clean root and use it there (as root)
	@scripts/test-package build/release/packages/crossdock_*.deb

check-format: packages-check ## Fail when a source is not as clang-format leaves it
	@git ls-files '*.cc' '*.h' | xargs -P $(JOBS) -n 40 clang-format-14 --dry-run -Werror

check-tidy: build packages-check ## clang-tidy over the sources that changed since the upstream branch, or in the last commit
	@scripts/tidy-changed build/release

sizes: packages-check ## The sizes that the style names
	@scripts/sizes

bench: build ## Measure, and compare with the limits
	@bench/run build/release/bench

asan: packages-build packages-test packages-check ## Every test under AddressSanitizer and UBSan (clang)
	@$(call configure,asan,)
	@cmake --build --preset asan -j $(JOBS)
	@ctest --preset asan -LE fuzz

tsan: packages-build packages-test packages-check ## Every test with threads under ThreadSanitizer (clang)
	@$(call configure,tsan,)
	@cmake --build --preset tsan -j $(JOBS) --target threaded_tests
	@ctest --preset tsan -L threads

fuzz: packages-build packages-test packages-check ## Each fuzz target for FUZZ_SECONDS
	@$(call configure,asan,-DCROSSDOCK_FUZZ_SECONDS=$(FUZZ_SECONDS))
	@cmake --build --preset asan -j $(JOBS) --target fuzz_targets
	@ctest --preset asan -L fuzz

coverage: packages-build packages-dev ## Line coverage of the libraries
	@$(call configure,coverage,)
	@cmake --build --preset coverage -j $(JOBS)
	@find build/coverage -name '*.gcda' -delete
	@ctest --preset coverage
	@gcovr --root . --filter base/ --filter model/ --filter planner/ --filter executor/ --filter backends/ build/coverage

tidy: build packages-dev ## clang-tidy over the libraries
	@TIDY_SECONDS=7200 scripts/tidy-changed --all build/release

format: packages-dev ## Format the sources
	@git ls-files '*.cc' '*.h' | xargs clang-format-14 -i

clean: ## Remove what was built
	@rm -rf build
