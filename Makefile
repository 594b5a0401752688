# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds irdma.ko against the headers of one kernel, and runs what belongs to the project;
# `make help` lists the targets.

VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' $(CURDIR)/dkms.conf)
KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build
MANDIR ?= /usr/local/share/man
KERNEL_DOC ?= $(shell scripts/lab kdir 6.12)/scripts/kernel-doc

kbuild = -C $(KDIR) M=$(CURDIR) $(sparse_args)
# Header packages of 7.3 lack the script by which kbuild finds out that there is a sparse, so it
# says that there is none; and sparse 0.6.4 does not know two things that those headers use.
ifneq ($(C),)
sparse_args = KBUILD_CHECKSRC=$(C) CF="-D__typeof_unqual__=__typeof__ '-D__builtin_strlen(s)=(sizeof(s)-1)'"
endif
check_args = $(if $(KERNEL),--kernel $(KERNEL)) $(if $(TESTS),--tests '$(TESTS)')

modules: check-kdir
	$(MAKE) $(kbuild) modules

check-kdir:
	@test -e $(KDIR)/Makefile || { echo "No kernel headers in $(KDIR):" \
		"install linux-headers-$(KVER), or give KDIR=DIR" >&2; exit 1; }

clean: check-kdir
	$(MAKE) $(kbuild) clean

install: modules
	$(MAKE) $(kbuild) modules_install INSTALL_MOD_DIR=updates
	depmod -a $(KVER)

dkms-install:
	rm -rf /usr/src/irdma-$(VERSION)
	install -d /usr/src/irdma-$(VERSION)/scripts
	install -m 644 Makefile Kbuild dkms.conf *.c *.h /usr/src/irdma-$(VERSION)
	install -m 755 scripts/kapi scripts/ice-layout scripts/btf-fields.c /usr/src/irdma-$(VERSION)/scripts
	dkms install irdma/$(VERSION) $(DKMS_FLAGS)

man:
	scripts/mkman $(KERNEL_DOC) build/man

install-man: man
	install -d $(MANDIR)/man9
	install -m 644 build/man/*.9 $(MANDIR)/man9

deb:
	scripts/mkdeb

# What runs the lab is Python; a minimal Debian comes without it.
/usr/bin/python3:
	apt-get update -q
	DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends python3

demo check check-long lab-check bench: | /usr/bin/python3

demo:
	scripts/demo

check:
	@scripts/check $(check_args)

check-long:
	@scripts/check --long $(check_args)

lab-check:
	@scripts/check $(if $(KERNEL),--kernel $(KERNEL)) --tests lab-acceptance

bench:
	scripts/bench $(if $(KERNEL),--kernel $(KERNEL)) $(if $(ROUNDS),--rounds $(ROUNDS))

help:
	@echo 'make [KDIR=DIR] [W=1] [C=2]  build irdma.ko (default: for the running kernel)'
	@echo '     [ICE_KO=FILE VMLINUX=FILE]  whose ice to read the layout from (kernels 6.1, 6.12)'
	@echo 'make install                 install it below updates/, where modprobe looks first'
	@echo 'make dkms-install            hand the sources to DKMS and let it build and install'
	@echo 'make deb                     Debian package of the DKMS sources, in build/'
	@echo 'make man | install-man       manual pages, section 9, of the connection engine'
	@echo 'make demo                    two virtual hosts run RDMA on the driver'
	@echo 'make check [KERNEL=7.3|6.12|6.1|debug] [TESTS=word]   all tests, or some'
	@echo 'make check-long              with the long simulations and soak tests'
	@echo 'make lab-check [KERNEL=7.3]  the lab, accepted by the in-tree driver'
	@echo 'make bench [ROUNDS=5]        measure against the in-tree driver, write docs/performance.md'
	@echo 'make clean'

.PHONY: modules check-kdir clean install dkms-install man install-man deb demo check check-long lab-check bench help
