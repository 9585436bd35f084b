#!/bin/bash
# Build what `make vm-arm` boots, in the folder that is the only argument:
#
#   kernel, initrd      Debian's kernel for arm64, and busybox with init_arm
#   esp.img             EFI system partition for boot CDs: GRUB for arm64 that reads the CD
#   tftp                iPXE for arm64
#
# Needs Debian's mirror, and the packages that doc/guides/arm.md names.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
out=$(cd "$1" && pwd)
. "$here/fetch.sh"
# Drivers of the machine that qemu shows, each with those that it needs.
MODULES="virtio_pci virtio_net virtio_scsi sr_mod isofs"
GRUB_MODULES="iso9660 normal configfile linux"

TOOLS="qemu-system-aarch64 grub-mkstandalone mkfs.vfat mmd mcopy depmod cpio zstd ip dnsmasq"
missing=$(for tool in $TOOLS; do command -v "$tool" >/dev/null || echo "$tool"; done)
[ -e /usr/share/AAVMF/AAVMF_CODE.fd ] || missing="$missing AAVMF"
if [ -n "$missing" ]; then
    echo "cannot build: not installed:" $missing "(their packages: doc/guides/arm.md)" >&2
    exit 1
fi

log=$out/build.log
exec 3>&1 >"$log" 2>&1
trap 'echo "the build failed: see $log" >&3' ERR
say() { echo "$*" >&3; }

apt=$out/apt
say "packages of Debian for arm64"
rm -rf "$apt"
fetch "$apt" arm64 bookworm linux-image-cloud-arm64 busybox-static grub-efi-arm64-bin
fetch "$apt" arm64 trixie ipxe

say "kernel and ramdisk"
root=$out/root kernel=$(ls "$apt/root/lib/modules")
rm -rf "$root"
mkdir -p "$root"/{bin,modules}
cp "$apt/root/boot/vmlinuz-$kernel" "$out/kernel"
cp "$apt/root/bin/busybox" "$root/bin/"
install -m 755 "$here/init_arm" "$root/init"
depmod -b "$apt/root" "$kernel"
for module in $MODULES; do
    modprobe -d "$apt/root" -S "$kernel" --show-depends "$module" | sed -n 's/^insmod \(\S*\).*/\1/p'
done | awk '!seen[$0]++' | while read -r path; do
    cp "$path" "$root/modules/"
    basename "$path" >>"$root/modules/order"
done
(cd "$root" && find . -print0 | cpio --null -o -H newc --quiet) | zstd -q -f -o "$out/initrd"

say "boot loaders of boot CDs and of the network"
cat >"$out/grub.cfg" <<'CFG'
set root=cd0 # not a search: the disk may have a file of this name
configfile ($root)/EFI/BOOT/grub.cfg
CFG
grub-mkstandalone -O arm64-efi -d "$apt/root/usr/lib/grub/arm64-efi" -o "$out/grub.efi" \
    --fonts= --locales= --themes= --modules="$GRUB_MODULES" --install-modules="$GRUB_MODULES" \
    "boot/grub/grub.cfg=$out/grub.cfg"
rm -f "$out/esp.img"
mkfs.vfat -C "$out/esp.img" 8192
mmd -i "$out/esp.img" ::/EFI ::/EFI/BOOT
mcopy -i "$out/esp.img" "$out/grub.efi" ::/EFI/BOOT/BOOTAA64.EFI
mkdir -p "$out/tftp"
cp "$apt/root/usr/lib/ipxe/ipxe-arm64.efi" "$out/tftp/"
rm -rf "$apt" "$root" "$out"/{grub.efi,grub.cfg}
