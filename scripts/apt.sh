# How the scripts of this folder call apt-get; they source this file.

# A machine that has just started is often installing its own updates. apt-get waits for dpkg's lock when it is asked to, but
# not for the locks of the package lists and of the downloads: there it ends at once, and is asked again here.
apt_get() { # arguments of apt-get; everything it says goes to standard error
	waits=${ORRERY_APT_WAITS:-30}
	log=$(mktemp)
	while :; do
		result=0
		# Not through a pipe: a service that an installation starts could keep it open for ever.
		LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300 "$@" 2>"$log" >&2 || result=$?
		cat "$log" >&2
		if [ "$result" -eq 0 ] || [ "$waits" -eq 0 ] || ! grep -q 'Could not get lock /var/[a-z]*/apt/' "$log"; then
			break
		fi
		waits=$((waits - 1))
		echo "another program is installing packages; waiting for it" >&2
		sleep "${ORRERY_APT_PAUSE:-10}"
	done
	rm -f "$log"
	return "$result"
}
