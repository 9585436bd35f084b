#!/bin/bash
# Build what `make vm` boots, in the folder that is the only argument:
#
#   ramdisk/vmlinuz, ramdisk/initrd.img   Debian with the published ironic-python-agent, and our
#                                         plug-in for it that proves what was booted
#   esp.img                               EFI system partition for boot CDs: GRUB that reads the CD
#                                         and measures what it reads; no firmware runs it with
#                                         secure boot
#   http/os.qcow2                         whole-disk image for BIOS and UEFI; it boots the same
#                                         kernel and ramdisk, which then are no agent (see init)
#   http/root.qcow2                       image of a root partition, with GRUB for BIOS and UEFI
#   tftp                                  Debian's signed boot loaders for the network
#   tools                                 Python packages that write the variables of the firmware
#
# Needs root, Debian's mirror, PyPI and the packages that doc/guides/deploying.md names.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"/{ramdisk,http}
out=$(cd "$1" && pwd)
. "$here/fetch.sh"
root=$out/root
pip=${PIP:-.venv/bin/pip}
AGENT=ironic-python-agent==13.0.0
GLEAN=glean==1.25.1
FIRMWARE=virt-firmware==26.10
SUITE=bookworm
PYTHON=3.11 # of the suite
# A kernel for virtual machines, and what the agent calls.
PACKAGES=linux-image-cloud-amd64,python3,udev,kmod,iproute2,ca-certificates,busybox-static
PACKAGES+=,qemu-utils,util-linux,fdisk,gdisk,parted,e2fsprogs,dosfstools,mdadm,dmidecode,lshw
PACKAGES+=,efibootmgr,pciutils,psmisc,hdparm,nvme-cli,ethtool,bsdextrautils,file
# For the network of the agent, whose glean writes files of ifupdown; for its plug-in.
PACKAGES+=,ifupdown,tpm2-tools
# Boot loaders of the systems that are deployed, signed for secure boot.
PACKAGES+=,shim-signed,grub-efi-amd64-signed,grub-pc-bin,grub2-common
MODULES="iso9660 normal configfile linux tpm"

TOOLS="qemu-system-x86_64 qemu-img swtpm debootstrap grub-mkimage mke2fs mkfs.vfat mmd mcopy syslinux"
TOOLS+=" sfdisk cpio zstd ip ipmi_sim ipmitool socat"
missing=$(for tool in $TOOLS; do command -v "$tool" >/dev/null || echo "$tool"; done)
if [ -n "$missing" ]; then
    echo "cannot build: not installed:" $missing "(their packages: doc/guides/deploying.md)" >&2
    exit 1
fi

log=$out/build.log
exec 3>&1 >"$log" 2>&1
trap 'echo "the build failed: see $log" >&3' ERR
say() { echo "$*" >&3; }

say "tools: $FIRMWARE"
rm -rf "$out/tools"
"$pip" --no-input install --target "$out/tools" "$FIRMWARE"

say "ramdisk: Debian $SUITE"
rm -rf "$root"
debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$root"

install -m 755 "$here/init" "$root/init"
rm -rf "$root"/{var/lib/apt,var/cache,var/log,usr/share/{doc,man,info,locale,i18n}}
mkdir -p "$root/var/log"

say "image of a root partition"
cat >"$root/etc/default/grub" <<'CFG'
GRUB_TIMEOUT=0
GRUB_CMDLINE_LINUX="console=ttyS0 panic=-1 init=/init vm.os"
CFG
rm -f "$out/root.raw"
mke2fs -q -t ext4 -d "$root" "$out/root.raw" $(($(du -sm "$root" | cut -f 1) + 150))M
qemu-img convert -c -f raw -O qcow2 -o compression_type=zstd "$out/root.raw" "$out/http/root.qcow2"
rm -f "$out/root.raw"

say "ramdisk: $AGENT"
"$pip" --no-input install --python-version "$PYTHON" --only-binary=:all: \
    --target "$root/usr/local/lib/python$PYTHON/dist-packages" "$AGENT" "$GLEAN"
"$pip" --no-input install --no-deps \
    --target "$root/usr/local/lib/python$PYTHON/dist-packages" "$here/../../contrib/agent"
printf '#!/bin/sh\nexec busybox poweroff -f\n' >"$root/sbin/poweroff"
chmod 755 "$root/sbin/poweroff"
cp "$root"/boot/vmlinuz-* "$out/ramdisk/vmlinuz"
cp "$root/usr/lib/shim/shimx64.efi.signed" "$out/bootx64.efi"
cp "$root/usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed" "$out/grubx64.efi"
mkdir -p "$out/tftp/grub"
cp "$out/bootx64.efi" "$out/tftp/"
cp "$root/usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed" "$out/tftp/grubx64.efi"
echo "configfile /grub.cfg" >"$out/tftp/grub/grub.cfg"
rm -rf "$root"/{boot,usr/lib/grub}
# At every boot it would take seconds; what cannot be compiled is not run either.
chroot "$root" python3 -m compileall -q /usr/lib/python3 "/usr/local/lib/python$PYTHON" || true
(cd "$root" && find . -print0 | cpio --null -o -H newc --quiet) |
    zstd -q -T0 -f -o "$out/ramdisk/initrd.img"
rm -rf "$root"

say "boot loader of boot CDs: GRUB of Debian trixie, since that of $SUITE loses the firmware's log"
fetch "$out/apt" amd64 trixie grub-efi-amd64-bin
cat >"$out/grub.cfg" <<'CFG'
set root=cd0 # not a search: the disk may have a file of this name
configfile ($root)/EFI/BOOT/grub.cfg
CFG
grub-mkimage -d "$out/apt/root/usr/lib/grub/x86_64-efi" -O x86_64-efi -o "$out/unsigned.efi" \
    -p /boot/grub -c "$out/grub.cfg" $MODULES
rm -rf "$out/apt"
rm -f "$out/esp.img"
mkfs.vfat -C "$out/esp.img" 8192
mmd -i "$out/esp.img" ::/EFI ::/EFI/BOOT
mcopy -i "$out/esp.img" "$out/unsigned.efi" ::/EFI/BOOT/BOOTX64.EFI

say "image of a system"
cat >"$out/grub.cfg" <<'CFG'
search --no-floppy --label VM_OS --set=root
linux /vmlinuz console=ttyS0 panic=-1 vm.os
initrd /initrd.img
boot
CFG
cat >"$out/syslinux.cfg" <<'CFG'
DEFAULT os
LABEL os
  KERNEL /vmlinuz
  INITRD /initrd.img
  APPEND console=ttyS0 panic=-1 vm.os
CFG
files=("$out"/{ramdisk/vmlinuz,ramdisk/initrd.img,syslinux.cfg})
mib=$(($(du -cm "${files[@]}" "$out"/*.efi | tail -n 1 | cut -f 1) + 16))
rm -f "$out/os.fat" "$out/os.raw"
mkfs.vfat -n VM_OS -h 2048 -C "$out/os.fat" $((mib * 1024))
mmd -i "$out/os.fat" ::/EFI ::/EFI/BOOT ::/EFI/debian
mcopy -i "$out/os.fat" "$out/bootx64.efi" ::/EFI/BOOT/BOOTX64.EFI
mcopy -i "$out/os.fat" "$out/grubx64.efi" ::/EFI/BOOT/
mcopy -i "$out/os.fat" "$out/grub.cfg" ::/EFI/debian/
mcopy -i "$out/os.fat" "${files[@]}" ::/
syslinux --install "$out/os.fat"
truncate -s $((mib + 2))M "$out/os.raw"
printf 'label: gpt\nstart=2048, size=%s, type=U, attrs=LegacyBIOSBootable\n' $((mib * 2048)) |
    sfdisk "$out/os.raw"
dd if="$out/os.fat" of="$out/os.raw" bs=1M seek=1 conv=notrunc,sparse
dd if=/usr/lib/syslinux/mbr/gptmbr.bin of="$out/os.raw" conv=notrunc
qemu-img convert -f raw -O qcow2 "$out/os.raw" "$out/http/os.qcow2"
rm -f "$out"/{os.fat,os.raw,*.efi,grub.cfg,syslinux.cfg}
