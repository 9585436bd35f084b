# Unpack packages of Debian with apt's state in folders of its own, so that the host's stays as it is.
#
#   fetch FOLDER ARCHITECTURE SUITE PACKAGE...    unpack into FOLDER/root
#
# The scripts that build what virtual machines boot read this file.
MIRROR=${MIRROR:-http://deb.debian.org/debian}

fetch() {
    local folder=$1 arch=$2 suite=$3 state=$1/$3
    shift 3
    mkdir -p "$state"/{lists/partial,cache/archives/partial,deb} "$folder/root"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $MIRROR $suite main" \
        >"$state/sources.list"
    : >"$state/status"
    local options=(-o "APT::Architecture=$arch" -o "APT::Architectures=$arch"
        -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache"
        -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o APT::Sandbox::User=root -o Acquire::Languages=none)
    apt-get "${options[@]}" -q update
    local package names=()
    for package in "$@"; do
        case $package in
        linux-image-*) # a package without files: the newest kernel is what it depends on
            package=$(apt-cache "${options[@]}" depends "$package" |
                sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
            ;;
        esac
        names+=("$package")
    done
    (cd "$state/deb" && apt-get "${options[@]}" -q download "${names[@]}")
    for package in "$state"/deb/*.deb; do dpkg-deb -x "$package" "$folder/root"; done
}
