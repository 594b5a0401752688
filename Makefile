# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# Builds irdma.ko against the headers of one kernel; `make help` lists the targets.

KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build

kbuild = $(MAKE) -C $(KDIR) M=$(CURDIR)

modules:
	$(kbuild) modules

clean:
	$(kbuild) clean

.PHONY: modules clean
