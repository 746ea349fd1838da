# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_netwright_global_optspecs
    string join \n v/verbose h/help
end

function __fish_netwright_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_netwright_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_netwright_using_subcommand
    set -l cmd (__fish_netwright_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c netwright -n "__fish_netwright_needs_command" -s v -l verbose -d 'With --version: the commit, target and compilers, and the SHA-256 of each eBPF object'
complete -c netwright -n "__fish_netwright_needs_command" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "compare" -d 'Compare two groups of runs that exist already'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "doctor" -d 'Diagnose: read the host, sample its counters, list findings'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "explain" -d 'Explain a response time by its components; predict other loads'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "export" -d 'Serve metrics for Prometheus: softirq time, drops, waits, findings'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "fix" -d 'Diagnose, try each remedy under a workload, keep what helps'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "history" -d 'Show, compare, export and remove the runs that were kept'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "inspect" -d 'Show the host: NICs, queues, IRQs, CPUs, nodes, settings'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "lab" -d 'Practice hosts on this machine: namespaces, containers, a guest'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "lint" -d 'Judge each line of inherited tuning, with the reason'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "measure" -d 'Send defined traffic to a server, and report the results'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "mesh" -d 'Measure a few peers of many, in a graph that all hosts share'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "place" -d 'Propose CPUs for services, beside their NIC and disks'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "prove" -d 'Run an experiment: interleaved runs, and a verdict'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "report" -d 'Make one page of results: HTML with charts, or Markdown'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "serve" -d 'Run the measurement server'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "snapshot" -d 'Write the host\'s facts and raw sources into one archive'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "tune" -d 'Change the host, reversibly: plan, apply, confirm, roll back'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "watch" -d 'Show live softirq time, the tasks that lose time to it, and where packets wait'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "schema" -d 'Print the JSON schema of a command\'s --json document'
complete -c netwright -n "__fish_netwright_needs_command" -f -a "help" -d 'Explain a concept, or print the whole help of a command'
complete -c netwright -n "__fish_netwright_using_subcommand compare" -l group -d 'Take the groups from this column of a table, or from `case`: the command, job or level that each run names' -r
complete -c netwright -n "__fish_netwright_using_subcommand compare" -l before -d 'The value of the group before, where the column has more than two [default: the first]' -r
complete -c netwright -n "__fish_netwright_using_subcommand compare" -l after -d 'The value of the group after' -r
complete -c netwright -n "__fish_netwright_using_subcommand compare" -l metric -d 'Compare only this metric; with `:higher` or `:lower`, which says what is better; repeatable' -r
complete -c netwright -n "__fish_netwright_using_subcommand compare" -l limit -d 'Exit with code 0 only if each metric is shown to be worse by less than this share' -r
complete -c netwright -n "__fish_netwright_using_subcommand compare" -l min-effect -d 'Smaller effects do not matter' -r
complete -c netwright -n "__fish_netwright_using_subcommand compare" -l noise-floor -d 'Runs where nothing was changed: the smallest difference that this host shows; repeatable' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand compare" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand compare" -l all-metrics -d 'Compare every figure of the files, not only the main ones'
complete -c netwright -n "__fish_netwright_using_subcommand compare" -l markdown -d 'Write Markdown, for a pull request'
complete -c netwright -n "__fish_netwright_using_subcommand compare" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand compare" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand compare" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand compare" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l window -d 'How long to watch the counters, 100ms to 10m [default: 5s]' -r
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l for -d 'What the host should be good at; some rules judge for one goal only' -r -f -a "throughput\t'Bits and requests per second'
latency\t'The time of one request'"
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l fail-on -d 'Exit with code 1 when a finding is at least this severe' -r -f -a "info\t'Worth knowing; costs nothing measurable now'
warning\t'Costs something now or soon will'
critical\t'Limits the host now, or loses data'"
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l root -d 'Read this directory tree, snapshot or sosreport instead of the running host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l since -d 'An earlier snapshot or archive of the same host: judge the time between it and --root' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l peer -d 'Judge this host as well, over the same window, while streams load the path, and say which end limits: `ssh://[USER@]HOST[:PORT][/PATH/OF/netwright]`' -r
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l fleet -d 'Ask a Prometheus which hosts are limited by what. It scrapes their `netwright export`. The URL is `http://HOST[:PORT][/PREFIX]`, or https' -r
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l match -d 'Only hosts with these labels, as PromQL has them: `\'dc="ams",job="netwright"\'`' -r
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l min-severity -d 'Leave out findings that are less severe' -r -f -a "info\t'Worth knowing; costs nothing measurable now'
warning\t'Costs something now or soon will'
critical\t'Limits the host now, or loses data'"
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l top -d 'List at most this many hosts, causes and changes; `-v` lists all' -r
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l fleet-secret-file -d 'The Prometheus\' bearer token, or `USER:PASSWORD`, from this file' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l ca -d 'PEM file with the certificate authorities to trust instead of the system\'s' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l pid -d 'Processes with this id' -r
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l name -d 'By short name or program file name' -r
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l port -d 'By the port they listen on' -r
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l unit -d 'By systemd unit, such as \'ceph-osd@*\'' -r
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l container -d 'By container name or id prefix' -r
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l no-bpf -d 'Attach no eBPF programs: softirq time is taken from /proc/stat. NETWRIGHT_BPF=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l no-load -d 'Send nothing meanwhile: judge the traffic that is there'
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l insecure -d 'Accept any certificate: whoever intercepts the connection reads the secret'
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand doctor" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l port -d 'The server on this TCP port of this host; in any of its network namespaces; repeat for more' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l pid -d 'This process and its descendants; with --port, only that port; repeat for more' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l responder -d '`netwright serve` on the server\'s host; `HOST[:PORT]`, the network is measured with it [default: started automatically where the server is on this host]' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l secret-file -d 'Read the server\'s secret from this file [default: from NETWRIGHT_SECRET]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l request -d 'rtt: size of the request' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l response -d 'rtt: size of the response [default: as the request]' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l command -d 'redis: the command, as for `measure redis`; repeat for more, which are sent cyclically [default: GET key:{key}]' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l path -d 'Predict for another path, such as rtt=80us; that is a path with that round trip; `host=HOST[:PORT]` is the path to a `netwright serve` on that host, measured interleaved with the network alone on this path; repeat for more' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l cores -d 'Predict for a server with this number of CPUs' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l channels -d 'Predict for another host with this number of NIC channels, 1 or a list, each on its own CPU: from the CPU time of interrupts and softirqs while the network was measured alone' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l duration -d 'Time to measure; workload and network interleaved, or a server that is observed' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l max-duration -d 'Continue until the components add up, at most this long [default: three times --duration]' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l round -d 'The measured part of each round' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l peer-cpu -d 'Pin the responder\'s threads to these of its CPUs; for a server other than the responder to those that it runs on' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand explain" -s H -l header -d 'http: a header line of each request: \'Name: value\'; repeat for more' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l ca -d 'https, rediss: trust the certificates in this PEM file instead of the system\'s' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand explain" -s f -l script -d 'pg: the transaction; tpcb-like, simple-update, select-only, select1, or a script file; repeat for more, NAME@3 for a weight [default: select-only, which changes nothing]' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -s M -l protocol -d 'pg: protocol mode of the statements, as pgbench\'s -M' -r -f -a "simple\t'As text, values included'
extended\t'Parsed each time; values are sent separately'
prepared\t'Parsed once on each connection'"
complete -c netwright -n "__fish_netwright_using_subcommand explain" -s s -l scale -d 'pg: the scripts\' :scale [default: the rows of pgbench_branches]' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -s D -l define -d 'pg: a variable for the scripts: NAME=VALUE; repeat for more' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l flows -l clients -d 'Concurrent connections, each a client: 1 or a list. The first is explained, all are predicted' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l threads -d 'Threads of the clients' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l wait -d 'Wait mode of the client\'s threads and of the responder\'s' -r -f -a "block\t'Sleep in the kernel (blocking I/O)'
spin\t'Poll all the time; uses a whole CPU'
spin-then-block\t'Poll for 50 µs, then sleep'
busy-poll\t'Sleep while the kernel polls the NIC\'s queue'"
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l cpu -d 'Pin the client\'s threads to these CPUs: 0, 2-3 [default: chosen]' -r
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l always -d 'Observe every call at any cost [default: at most 1% of the time of each CPU]'
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l verify -d 'Measure the predictions for this path too; with numbers of clients between, and report the error'
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l no-pin -d 'Let the scheduler place the threads'
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand explain" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand explain" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand explain" -l insecure -d 'https, rediss: do not check the server\'s certificate'
complete -c netwright -n "__fish_netwright_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand export" -l listen -d 'Serve /metrics on this address, port or both [default: 127.0.0.1:7473]. Beyond loopback a scraper needs a secret as its bearer token: the one in --secret-file, otherwise in NETWRIGHT_SECRET, otherwise a generated one that is printed' -r
complete -c netwright -n "__fish_netwright_using_subcommand export" -l secret-file -d 'Require the secret in this file, also on loopback' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand export" -l format -d 'The form of --once' -r -f -a "prometheus\t'Prometheus\' text format 0.0.4'
openmetrics\t'OpenMetrics 1.0, with units'"
complete -c netwright -n "__fish_netwright_using_subcommand export" -s o -l output -d 'Write --once to this file; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand export" -l interval -d 'Length of an interval, 100ms to 1h: how often sums, findings and drift are renewed' -r
complete -c netwright -n "__fish_netwright_using_subcommand export" -l softirq -d 'Softirq time: scaled from a share of each interval, or exact' -r -f -a "always\t'All the time: exact'
auto\t'For a share of each interval that costs no CPU more than 0.2% of its time'"
complete -c netwright -n "__fish_netwright_using_subcommand export" -l waits -d 'Where packets wait, by process' -r -f -a "auto\t'For a share of each interval that costs no CPU more than 0.2% of its time'
always\t'All the time, whatever it costs'
never\t'Not at all: attach no program for it'"
complete -c netwright -n "__fish_netwright_using_subcommand export" -l drops -d 'Dropped packets by reason' -r -f -a "auto\t'For a share of each interval that costs no CPU more than 0.2% of its time'
always\t'All the time, whatever it costs'
never\t'Not at all: attach no program for it'"
complete -c netwright -n "__fish_netwright_using_subcommand export" -l processes -d 'Names of processes with series of their own; all others are one' -r
complete -c netwright -n "__fish_netwright_using_subcommand export" -l state-dir -d 'Directory of tune\'s journal [default: NETWRIGHT_STATE or /var/lib/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand export" -l probe -d 'Measure round trips with `netwright serve` there, `rtt://HOST[:PORT]` (repeatable); it gets the secret of --secret-file or NETWRIGHT_SECRET, too' -r
complete -c netwright -n "__fish_netwright_using_subcommand export" -l every -d 'The period of probes, 1s to 1h' -r
complete -c netwright -n "__fish_netwright_using_subcommand export" -l once -d 'Watch one interval, print the metrics, and end'
complete -c netwright -n "__fish_netwright_using_subcommand export" -l no-bpf -d 'Attach no eBPF programs: only data from /proc'
complete -c netwright -n "__fish_netwright_using_subcommand export" -l jitter -d 'Probe at a random time of each period, so that many hosts do not probe at once'
complete -c netwright -n "__fish_netwright_using_subcommand export" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand export" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l metric -d 'A metric, its location and its better direction; `p50=runs.0.rtt_ns.p50:lower` in JSON, `tps=/tps = ([0-9.]+)/:higher` by a regular expression; `:lower:guard` for a guard' -r
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l goal -d 'The goal, for a netwright measurement' -r -f -a "throughput\t'Bits, requests, transactions or connections per second'
p99\t'The 99th percentile of the response times'
cpu\t'Less CPU of this host for the same work'"
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l responder -d 'Change this host as well, over ssh; `ssh://[USER@]HOST[:PORT][/PATH/OF/netwright]`' -r
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l try -d 'Try this as well, after the changes that the findings propose; `peer:KNOB=VALUE` at the server' -r
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l budget -d 'Time budget for the whole run' -r
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l runs -d 'Maximum number of runs of each experiment, at least 24 [default: what an equal share of --budget permits]' -r
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l window -d 'Time to sample the counters under the workload before each diagnosis' -r
complete -c netwright -n "__fish_netwright_using_subcommand fix" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l workload -d 'The workload to improve; a netwright measurement, `measure …` or `rtt://HOST`, `stream://`, `connect://`, `http://`, `pg://`, `redis://`, followed by its options. A run should be short' -r
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l command -d 'Or any command, run by `sh -c`, with --metric' -r
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l no-bpf -d 'Attach no eBPF programs on this host while it is observed; NETWRIGHT_BPF=off in the environment does it for every command, and for the workload'
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l freeze-host -d 'Freeze the host meanwhile: irqbalance paused, frequency governors at performance; both are restored at the end'
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l ask -d 'Ask before each change; the default on a terminal'
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l yes -d 'Change this host without asking'
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l dry-run -d 'Run the workload and list what would be tried; no setting is changed'
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand fix" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand fix" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand fix" -l allow-disconnect -d 'Try also changes that may cut your own connection'
complete -c netwright -n "__fish_netwright_using_subcommand fix" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand history; and not __fish_seen_subcommand_from list show diff prune export import" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand history; and not __fish_seen_subcommand_from list show diff prune export import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand history; and not __fish_seen_subcommand_from list show diff prune export import" -f -a "list" -d 'List runs, the newest first'
complete -c netwright -n "__fish_netwright_using_subcommand history; and not __fish_seen_subcommand_from list show diff prune export import" -f -a "show" -d 'Show a run as its command printed it'
complete -c netwright -n "__fish_netwright_using_subcommand history; and not __fish_seen_subcommand_from list show diff prune export import" -f -a "diff" -d 'Show which facts and figures differ between two runs or tags'
complete -c netwright -n "__fish_netwright_using_subcommand history; and not __fish_seen_subcommand_from list show diff prune export import" -f -a "prune" -d 'Remove runs by age, number or tag'
complete -c netwright -n "__fish_netwright_using_subcommand history; and not __fish_seen_subcommand_from list show diff prune export import" -f -a "export" -d 'Write runs as compressed lines of JSON, or their figures as CSV'
complete -c netwright -n "__fish_netwright_using_subcommand history; and not __fish_seen_subcommand_from list show diff prune export import" -f -a "import" -d 'Take runs from exports; those that are there stay as they are'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -l host -d 'Of this host: its name or its fingerprint' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -l kind -d 'Of this kind: `doctor`, `measure`, `measure-rtt`, `explain`, `prove`, `fix`, `tune`' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -l tag -d 'Of this tag, which `--tag WORD` gave to the run' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -l since -d 'From this date on, `2026-11-26` or `2026-11-26T14:30`, in UTC' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -l until -d 'Before this date, in UTC' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -s n -l last -d 'At most this many [default: 50, with --json all]' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from show" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from show" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from show" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from show" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from show" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from show" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from diff" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from diff" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from diff" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from diff" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from diff" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from diff" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from prune" -l keep -d 'Remove all but the newest N of the chosen runs' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from prune" -l older-than -d 'Remove only runs that are older, such as 90d, 12h or 8w; with --keep, those of them that are not among the newest N' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from prune" -l host -d 'Of this host: its name or its fingerprint' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from prune" -l kind -d 'Of this kind: `doctor`, `measure`, `measure-rtt`, `explain`, `prove`, `fix`, `tune`' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from prune" -l tag -d 'Of this tag, which `--tag WORD` gave to the run' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from prune" -l since -d 'From this date on, `2026-11-26` or `2026-11-26T14:30`, in UTC' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from prune" -l until -d 'Before this date, in UTC' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from prune" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from prune" -l dry-run -d 'List the runs that would be removed, and remove none'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from prune" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from export" -s o -l output -d 'The file; an existing one is replaced [default: standard output]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from export" -l host -d 'Of this host: its name or its fingerprint' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from export" -l kind -d 'Of this kind: `doctor`, `measure`, `measure-rtt`, `explain`, `prove`, `fix`, `tune`' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from export" -l tag -d 'Of this tag, which `--tag WORD` gave to the run' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from export" -l since -d 'From this date on, `2026-11-26` or `2026-11-26T14:30`, in UTC' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from export" -l until -d 'Before this date, in UTC' -r
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from export" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from export" -l figures -d 'Write the figures of the runs as CSV, a figure a line'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from export" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from import" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand history; and __fish_seen_subcommand_from import" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -l nic -d 'Only this NIC, in full; repeatable' -r
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -l picture -d 'Draw the host as an SVG file (`-` for standard output)' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -l root -d 'Read this directory tree, snapshot or sosreport instead of the running host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -l pid -d 'Processes with this id' -r
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -l name -d 'By short name or program file name' -r
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -l port -d 'By the port they listen on' -r
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -l unit -d 'By systemd unit, such as \'ceph-osd@*\'' -r
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -l container -d 'By container name or id prefix' -r
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand inspect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and not __fish_seen_subcommand_from up exec list down" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and not __fish_seen_subcommand_from up exec list down" -f -a "up" -d 'Bring up practice hosts'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and not __fish_seen_subcommand_from up exec list down" -f -a "exec" -d 'Run a command on a practice host'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and not __fish_seen_subcommand_from up exec list down" -f -a "list" -d 'List the running labs'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and not __fish_seen_subcommand_from up exec list down" -f -a "down" -d 'Remove practice hosts, whatever state they are in'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and __fish_seen_subcommand_from up" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and __fish_seen_subcommand_from up" -f -a "pair" -d 'Two hosts on a link'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and __fish_seen_subcommand_from up" -f -a "containers" -d 'Container-like hosts on a bridge'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and __fish_seen_subcommand_from up" -f -a "server" -d 'A guest with NUMA nodes and a multi-queue NIC'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and __fish_seen_subcommand_from exec" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and __fish_seen_subcommand_from list" -l json -d 'Write one JSON document with all labs and hosts'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and __fish_seen_subcommand_from down" -l all -d 'Remove all labs of this machine'
complete -c netwright -n "__fish_netwright_using_subcommand lab; and __fish_seen_subcommand_from down" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand lint" -l kernel -d 'Judge for a kernel of this version, such as 6.12' -r
complete -c netwright -n "__fish_netwright_using_subcommand lint" -l memory -d 'Judge for this much memory, such as 64GiB' -r
complete -c netwright -n "__fish_netwright_using_subcommand lint" -l nic-speed -d 'Judge for a NIC of this speed, such as 25Gbit' -r
complete -c netwright -n "__fish_netwright_using_subcommand lint" -l root -d 'Read this directory tree, snapshot or sosreport instead of the running host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand lint" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand lint" -l sarif -d 'Write SARIF 2.1.0, for a code review'
complete -c netwright -n "__fish_netwright_using_subcommand lint" -l fix -d 'Print the files as they should be, as a diff for `patch -p0` (of absolute names `patch -p0 -d /`). Writes nothing'
complete -c netwright -n "__fish_netwright_using_subcommand lint" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand lint" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand lint" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand lint" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -l rerun -d 'Repeat the measurement of this result' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -l secret-file -d 'Read the server\'s secret from this file [default: from NETWRIGHT_SECRET]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -f -a "rtt" -d 'Request and response: the round trip\'s whole distribution'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -f -a "stream" -d 'Bytes in one or both directions: bits per second, retransmits, loss'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -f -a "connect" -d 'Connections per second, the time to connect and to the first byte'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -f -a "offload" -d 'Which offload damages, merges or loses packets, in both directions'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -f -a "http" -d 'HTTP/1.1 requests to any server: latency, time to first byte, status codes'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -f -a "pg" -d 'PostgreSQL transactions, pgbench\'s or from script files: rates, latencies, failures'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and not __fish_seen_subcommand_from rtt stream connect offload http pg redis" -f -a "redis" -d 'Redis commands to any server with the Redis protocol: rates, latencies, errors'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l port -d 'The server\'s port; used when the target names none [default: 7471; iperf3 5201, qperf 19765]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l bind -d 'Send from this local address' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l secret-file -d 'Read the server\'s secret from this file [default: from NETWRIGHT_SECRET]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l transport -d 'Transport; a target unix:PATH implies unix' -r -f -a "tcp\t'A connection for each flow'
udp\t'Datagrams; lost ones are counted'
unix\t'A Unix stream socket'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l duration -d 'The measured window of each run' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l warmup -d 'Traffic before the window, not measured [default: 200ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l cooldown -d 'Traffic after the window, not measured [default: 50ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l precision -d 'Repeat until the 95% CI is this narrow, such as 2%; in percent of the result' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l max-time -d 'Maximum time of --precision for each run' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l wait -d 'Wait mode of the client\'s threads' -r -f -a "block\t'Sleep in the kernel (blocking I/O)'
spin\t'Poll all the time; uses a whole CPU'
spin-then-block\t'Poll for 50 µs, then sleep'
busy-poll\t'Sleep while the kernel polls the NIC\'s queue'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l cpu -d 'Pin the client\'s threads to these CPUs; 0, 2-3 [default: chosen, and printed]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l peer-wait -d 'Wait mode of the server\'s threads [default: as the client\'s]' -r -f -a "block\t'Sleep in the kernel (blocking I/O)'
spin\t'Poll all the time; uses a whole CPU'
spin-then-block\t'Poll for 50 µs, then sleep'
busy-poll\t'Sleep while the kernel polls the NIC\'s queue'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l peer-cpu -d 'Pin the threads of the server to these of its CPUs' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l buffer -d 'Send and receive buffers at both ends (SO_SNDBUF, SO_RCVBUF)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l nodelay -d 'TCP_NODELAY on or off [default: on, for stream off]' -r -f -a "true\t''
false\t''"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l mss -d 'Largest TCP segment, bytes (TCP_MAXSEG)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l dscp -d 'Differentiated services code point, 0 to 63' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l congestion -d 'TCP congestion control: cubic, bbr, …' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l threads -d 'Threads at each end, which share the flows' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l request -d 'Request size in bytes; 64, a list, or a sweep like 8..64k*2' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l response -d 'Response size in bytes [default: as the request]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l flows -d 'Concurrent connections; 1, a list, or a sweep like 1..64*2' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l queue-depth -d 'Queue depth: requests outstanding on each flow' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l think-time -d 'Closed loop: a thread computes this long after each response before its next request' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l peer-threads -d 'Threads of the server [default: as many as the client\'s]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l engine -d 'System calls of many streams on a thread, in closed loop' -r -f -a "auto\t'io_uring from 8 streams on a thread; epoll for all points of a sweep that has fewer'
epoll\t'One call for each message'
io_uring\t'One call for many messages (Linux 6.1)'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l peer -d 'Program of the server' -r -f -a "netwright\t'A running `netwright serve`'
qperf\t'A stock qperf 0.4'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l rate -d 'Requests per second over all flows; 20000 or 20k, open loop, timed from the schedule' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l timeout -d 'Time after which a UDP request counts as lost' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -s 4 -l ipv4 -d 'Only IPv4 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -s 6 -l ipv6 -d 'Only IPv6 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l udp -d 'Short for --transport udp'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l no-pin -d 'Let the scheduler place the threads at both ends'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l softirq -d 'Add softirq time by context to the evidence, by eBPF (needs root; about 100 ns a softirq). `serve --softirq` does so at the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l wait-split -d 'Run the variants that separate stack from wake-up latency: two CPUs blocking, two spinning, one CPU'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -s v -l verbose -d 'Print every placement of a mode; the CPUs that each end may use, the measurement noise'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from rtt" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l port -d 'The server\'s port; used when the target names none [default: 7471; iperf3 5201, qperf 19765]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l bind -d 'Send from this local address' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l secret-file -d 'Read the server\'s secret from this file [default: from NETWRIGHT_SECRET]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l transport -d 'Transport; a target unix:PATH implies unix' -r -f -a "tcp\t'A connection for each flow'
udp\t'Datagrams; lost ones are counted'
unix\t'A Unix stream socket'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l duration -d 'The measured window of each run' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l warmup -d 'Traffic before the window, not measured [default: 200ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l cooldown -d 'Traffic after the window, not measured [default: 50ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l precision -d 'Repeat until the 95% CI is this narrow, such as 2%; in percent of the result' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l max-time -d 'Maximum time of --precision for each run' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l wait -d 'Wait mode of the client\'s threads' -r -f -a "block\t'Sleep in the kernel (blocking I/O)'
spin\t'Poll all the time; uses a whole CPU'
spin-then-block\t'Poll for 50 µs, then sleep'
busy-poll\t'Sleep while the kernel polls the NIC\'s queue'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l cpu -d 'Pin the client\'s threads to these CPUs; 0, 2-3 [default: chosen, and printed]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l peer-wait -d 'Wait mode of the server\'s threads [default: as the client\'s]' -r -f -a "block\t'Sleep in the kernel (blocking I/O)'
spin\t'Poll all the time; uses a whole CPU'
spin-then-block\t'Poll for 50 µs, then sleep'
busy-poll\t'Sleep while the kernel polls the NIC\'s queue'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l peer-cpu -d 'Pin the threads of the server to these of its CPUs' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l buffer -d 'Send and receive buffers at both ends (SO_SNDBUF, SO_RCVBUF)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l nodelay -d 'TCP_NODELAY on or off [default: on, for stream off]' -r -f -a "true\t''
false\t''"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l mss -d 'Largest TCP segment, bytes (TCP_MAXSEG)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l dscp -d 'Differentiated services code point, 0 to 63' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l congestion -d 'TCP congestion control: cubic, bbr, …' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l threads -d 'Threads at each end, which share the flows' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l direction -d 'Direction of the bytes' -r -f -a "forward\t'From the client to the server'
reverse\t'From the server to the client'
both\t'Both directions at once'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l message -d 'Bytes of one send or datagram; a size, a list, or a sweep [default: 128k, UDP 1400]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l rate -d 'Bits per second each way; over all flows of a direction, 500Mbit, 10Gbit [default: unlimited, UDP 100Mbit]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -s i -l interval -d 'Print a line at this interval, as iperf3\'s -i does' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l zerocopy -d 'Avoid the copy at the sender' -r -f -a "sendfile\t'sendfile from a file in memory'
msg\t'MSG_ZEROCOPY: the kernel sends from the program\'s memory'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l peer -d 'Program of the server' -r -f -a "netwright\t'A running `netwright serve`'
iperf3\t'A stock `iperf3 -s`'
qperf\t'A stock qperf 0.4'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l flows -d 'Connections in each direction; 1, a list, or a sweep like 1..16*2' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -s 4 -l ipv4 -d 'Only IPv4 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -s 6 -l ipv6 -d 'Only IPv6 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l udp -d 'Short for --transport udp'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l no-pin -d 'Let the scheduler place the threads at both ends'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l softirq -d 'Add softirq time by context to the evidence, by eBPF (needs root; about 100 ns a softirq). `serve --softirq` does so at the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l skip-receive-copy -d 'Discard the bytes within the receiver\'s kernel (MSG_TRUNC)'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -s v -l verbose -d 'Print every interval; the CPUs that each end may use, the measurement noise'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from stream" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l port -d 'The server\'s port; used when the target names none [default: 7471; iperf3 5201, qperf 19765]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l secret-file -d 'Read the server\'s secret from this file [default: from NETWRIGHT_SECRET]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l duration -d 'The measured window of each run' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l warmup -d 'Traffic before the window, not measured [default: 200ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l cooldown -d 'Traffic after the window, not measured [default: 50ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l precision -d 'Repeat until the 95% CI is this narrow, such as 2%; in percent of the result' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l max-time -d 'Maximum time of --precision for each run' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l wait -d 'Wait mode of the client\'s threads' -r -f -a "block\t'Sleep in the kernel (blocking I/O)'
spin\t'Poll all the time; uses a whole CPU'
spin-then-block\t'Poll for 50 µs, then sleep'
busy-poll\t'Sleep while the kernel polls the NIC\'s queue'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l cpu -d 'Pin the client\'s threads to these CPUs; 0, 2-3 [default: chosen, and printed]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l peer-wait -d 'Wait mode of the server\'s threads [default: as the client\'s]' -r -f -a "block\t'Sleep in the kernel (blocking I/O)'
spin\t'Poll all the time; uses a whole CPU'
spin-then-block\t'Poll for 50 µs, then sleep'
busy-poll\t'Sleep while the kernel polls the NIC\'s queue'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l peer-cpu -d 'Pin the threads of the server to these of its CPUs' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l buffer -d 'Send and receive buffers at both ends (SO_SNDBUF, SO_RCVBUF)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l nodelay -d 'TCP_NODELAY on or off [default: on, for stream off]' -r -f -a "true\t''
false\t''"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l mss -d 'Largest TCP segment, bytes (TCP_MAXSEG)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l dscp -d 'Differentiated services code point, 0 to 63' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l congestion -d 'TCP congestion control: cubic, bbr, …' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l threads -d 'Threads at each end, which share the flows' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l request -d 'Bytes of a request on each connection; 0 for none' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l response -d 'Bytes of the response to it [default: as the request]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l close -d 'The end that closes' -r -f -a "local\t'The client: each connection leaves a TIME_WAIT of 60 s on the client'
peer\t'The server: the TIME_WAIT is on the server'
reset\t'The client, by reset: no TIME_WAIT'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l flows -d 'Concurrent connection attempts; 1, a list, or a sweep' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l rate -d 'Connections per second in all; 2000 or 2k, open loop' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l timeout -d 'Time after which an attempt counts as failed' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l bind -d 'Send from this local address, or in turn from several: 10.0.0.5,10.0.0.6 (each has its ports)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l transport -d 'tcp, or unix, implied by a target unix:PATH; UDP makes no connections' -r -f -a "tcp\t'A connection for each flow'
udp\t'Datagrams; lost ones are counted'
unix\t'A Unix stream socket'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -s 4 -l ipv4 -d 'Only IPv4 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -s 6 -l ipv6 -d 'Only IPv6 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l no-pin -d 'Let the scheduler place the threads at both ends'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l softirq -d 'Add softirq time by context to the evidence, by eBPF (needs root; about 100 ns a softirq). `serve --softirq` does so at the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -s v -l verbose -d 'Print the CPUs that each end may use and the measurement noise'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from connect" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -l port -d 'The server\'s port; used when the target names none [default: 7471]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -l bind -d 'Send from this local address' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -l secret-file -d 'Read the server\'s secret from this file [default: from NETWRIGHT_SECRET]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -s 4 -l ipv4 -d 'Only IPv4 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -s 6 -l ipv6 -d 'Only IPv6 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -s v -l verbose -d 'Print each probe instead of one line an offload'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from offload" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -s X -l method -d 'The method [default: GET, with a body POST]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -s H -l header -d 'A header line of each request: \'Name: value\'; repeat for more' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l body -d 'The body of each request' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l body-file -d 'A file that is the body of each request' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l flows -d 'Concurrent connections; 1, a list, or a sweep like 1..64*2' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l pipeline -d 'Requests outstanding on each connection; few servers answer more than one at a time' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l rate -d 'Requests per second over all connections; open loop, timed from the schedule' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l timeout -d 'Time after which a request counts as failed' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l duration -d 'The measured window of each run; with --requests an upper limit [default: 5s; with --requests 10m]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l requests -d 'Measure this number of requests instead; they begin with the window' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l ca -d 'With https: trust the certificates in this PEM file instead of the system\'s' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l cooldown -d 'Traffic after the window, not measured [default: 50ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l max-time -d 'Maximum time of --precision for each run' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l responder -d '`netwright serve` on the server\'s host; HOST:PORT, reports the CPU use of that host' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l secret-file -d 'Read the server\'s secret from this file [default: from NETWRIGHT_SECRET]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l bind -d 'Send from this local address' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l wait -d 'Wait mode of the client\'s threads' -r -f -a "block\t'Sleep in the kernel (blocking I/O)'
spin\t'Poll all the time; uses a whole CPU'
spin-then-block\t'Poll for 50 µs, then sleep'
busy-poll\t'Sleep while the kernel polls the NIC\'s queue'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l cpu -d 'Pin the client\'s threads to these CPUs; 0, 2-3 [default: chosen, and printed]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l threads -d 'Threads, which share the connections' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l buffer -d 'Send and receive buffers at both ends (SO_SNDBUF, SO_RCVBUF)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l nodelay -d 'TCP_NODELAY on or off [default: on, for stream off]' -r -f -a "true\t''
false\t''"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l mss -d 'Largest TCP segment, bytes (TCP_MAXSEG)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l dscp -d 'Differentiated services code point, 0 to 63' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l congestion -d 'TCP congestion control: cubic, bbr, …' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -s P -l interval -d 'Print progress at this interval to standard error, as pgbench\'s -P does: 1; the result has intervals of this length [default: 1s, printed on a terminal]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l precision -d 'Repeat until the 95% CI is this narrow, such as 2%; in percent of the median latency' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l warmup -d 'Traffic before the window, not measured; with a number of requests, the time to connect [default: 200ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l new-connections -d 'Use a new connection for each request'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l insecure -d 'With https: do not check the server\'s certificate'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l tls-resume -d 'With https: connections resume the session of an earlier one where the server permits it [default: every handshake is full]'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -s 4 -l ipv4 -d 'Only IPv4 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -s 6 -l ipv6 -d 'Only IPv6 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l no-pin -d 'Let the scheduler place the threads'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l softirq -d 'Add softirq time by context to the evidence, by eBPF (needs root; about 100 ns a softirq)'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from http" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s f -l script -d 'The transaction: tpcb-like, simple-update, select-only, select1, or a script file; NAME@3 for a weight; repeat for more [default: select-only, which changes nothing]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s M -l protocol -d 'Protocol mode, as pgbench\'s -M' -r -f -a "simple\t'As text, values included'
extended\t'Parsed each time; values are sent separately'
prepared\t'Parsed once on each connection'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l driver -d 'Driver of the transactions; netwright, or pgbench itself; its report and log are converted to the same result' -r -f -a "netwright\t'Netwright sends the transactions itself'
pgbench\t'The installed pgbench sends them'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l max-tries -d 'Maximum number of tries of a transaction that fails by serialization or deadlock; 0 is no limit' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s s -l scale -d 'The scripts\' :scale; tables are made for it [default: the rows of pgbench_branches; with --init 1]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s D -l define -d 'A variable for the scripts: NAME=VALUE; repeat for more' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l seed -d 'Seed of the scripts\' random numbers [default: different each time, and reported]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l transactions -d 'Measure this number of transactions in all instead (pgbench\'s -t is per client); they begin with the window' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l cooldown -d 'Traffic after the window, not measured [default: 50ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l max-time -d 'Maximum time of --precision for each run' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l responder -d '`netwright serve` on the server\'s host; HOST:PORT, reports the CPU use of that host' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l secret-file -d 'Read the server\'s secret from this file [default: from NETWRIGHT_SECRET]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l bind -d 'Send from this local address' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l wait -d 'Wait mode of the client\'s threads' -r -f -a "block\t'Sleep in the kernel (blocking I/O)'
spin\t'Poll all the time; uses a whole CPU'
spin-then-block\t'Poll for 50 µs, then sleep'
busy-poll\t'Sleep while the kernel polls the NIC\'s queue'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l cpu -d 'Pin the client\'s threads to these CPUs; 0, 2-3 [default: chosen, and printed]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l threads -d 'Threads, which share the connections' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l buffer -d 'Send and receive buffers at both ends (SO_SNDBUF, SO_RCVBUF)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l nodelay -d 'TCP_NODELAY on or off [default: on, for stream off]' -r -f -a "true\t''
false\t''"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l mss -d 'Largest TCP segment, bytes (TCP_MAXSEG)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l dscp -d 'Differentiated services code point, 0 to 63' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l congestion -d 'TCP congestion control: cubic, bbr, …' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s P -l interval -d 'Print progress at this interval to standard error, as pgbench\'s -P does: 1; the result has intervals of this length [default: 1s, printed on a terminal]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l precision -d 'Repeat until the 95% CI is this narrow, such as 2%; in percent of the median latency' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l warmup -d 'Traffic before the window, not measured; with a number of requests, the time to connect [default: 200ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s c -l flows -l clients -d 'Concurrent connections; 1, a list, or a sweep like 1..64*2' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s R -l rate -d 'Transactions per second over all connections; open loop, timed from the schedule' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l timeout -d 'Time after which a statement counts as failed' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s T -l duration -d 'The measured window of each run; with --transactions an upper limit [default: 5s; with --transactions 10m]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s i -l init -d 'Make pgbench\'s tables, and measure nothing; as `pgbench -i`, for this --scale. Tables of these names are dropped first'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l pipeline -d 'Send all statements of a transaction before awaiting the first answer'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s C -l connect-each -d 'Use a new connection for each transaction. Latencies include connecting; with --driver pgbench only with a --rate'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s r -l per-statement -d 'Report the latency of each statement'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s 4 -l ipv4 -d 'Only IPv4 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s 6 -l ipv6 -d 'Only IPv6 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l no-pin -d 'Let the scheduler place the threads'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l softirq -d 'Add softirq time by context to the evidence, by eBPF (needs root; about 100 ns a softirq)'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from pg" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l command -d 'The command; repeat for more, which are sent cyclically. `{key}` is a number of 12 digits below --keys, drawn for each; `{data}` a value of --data bytes' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l keys -d 'Number of keys; `{key}` draws from them' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l data -d 'The length of `{data}`' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l flows -d 'Concurrent connections; 1, a list, or a sweep like 1..64*2' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l pipeline -d 'Commands outstanding on each connection' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l rate -d 'Commands per second over all connections; open loop, timed from the schedule' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l timeout -d 'Time after which a command counts as failed' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l duration -d 'The measured window of each run; with --requests an upper limit [default: 5s; with --requests 10m]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l requests -d 'Measure this number of commands instead; they begin with the window' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l ca -d 'With rediss: trust the certificates in this PEM file instead of the system\'s' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l cooldown -d 'Traffic after the window, not measured [default: 50ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l max-time -d 'Maximum time of --precision for each run' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l responder -d '`netwright serve` on the server\'s host; HOST:PORT, reports the CPU use of that host' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l secret-file -d 'Read the server\'s secret from this file [default: from NETWRIGHT_SECRET]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l bind -d 'Send from this local address' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l wait -d 'Wait mode of the client\'s threads' -r -f -a "block\t'Sleep in the kernel (blocking I/O)'
spin\t'Poll all the time; uses a whole CPU'
spin-then-block\t'Poll for 50 µs, then sleep'
busy-poll\t'Sleep while the kernel polls the NIC\'s queue'"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l cpu -d 'Pin the client\'s threads to these CPUs; 0, 2-3 [default: chosen, and printed]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l threads -d 'Threads, which share the connections' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l buffer -d 'Send and receive buffers at both ends (SO_SNDBUF, SO_RCVBUF)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l nodelay -d 'TCP_NODELAY on or off [default: on, for stream off]' -r -f -a "true\t''
false\t''"
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l mss -d 'Largest TCP segment, bytes (TCP_MAXSEG)' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l dscp -d 'Differentiated services code point, 0 to 63' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l congestion -d 'TCP congestion control: cubic, bbr, …' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -s P -l interval -d 'Print progress at this interval to standard error, as pgbench\'s -P does: 1; the result has intervals of this length [default: 1s, printed on a terminal]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l precision -d 'Repeat until the 95% CI is this narrow, such as 2%; in percent of the median latency' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l warmup -d 'Traffic before the window, not measured; with a number of requests, the time to connect [default: 200ms]' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l new-connections -d 'Use a new connection for each command'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l insecure -d 'With rediss: do not check the server\'s certificate'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l tls-resume -d 'With rediss: connections resume the session of an earlier one where the server permits it [default: every handshake is full]'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -s 4 -l ipv4 -d 'Only IPv4 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -s 6 -l ipv6 -d 'Only IPv6 addresses of the server'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l no-pin -d 'Let the scheduler place the threads'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l softirq -d 'Add softirq time by context to the evidence, by eBPF (needs root; about 100 ns a softirq)'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand measure; and __fish_seen_subcommand_from redis" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -l peers -d 'The list of all peers, which every host must have alike: a file with HOST or HOST:PORT on each line, or `dns:NAME[:PORT]` for all addresses of a name. It is read again each period' -r
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -l self -d 'This host\'s entry in the list [default: the one with an address or the name of this host]' -r
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -l targets -d 'Targets of each host, in as many random rings; 1 is a ring' -r
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -l seed -d 'Seed of the rings, the same on every host' -r
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -l every -d 'The period, 1s to 1h: each target is measured once, at a random time of it' -r
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -l listen -d 'Serve /metrics on this address, port or both [default: 127.0.0.1:7474]. Beyond loopback a scraper needs the secret as its bearer token; without one, a generated one that is printed' -r
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -l secret-file -d 'The secret of the peers\' servers and of scrapers [default: from NETWRIGHT_SECRET]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -l once -d 'Measure each target once, print the results, and end'
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand mesh" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand place" -l pid -d 'Processes with this id' -r
complete -c netwright -n "__fish_netwright_using_subcommand place" -l name -d 'By short name or program file name' -r
complete -c netwright -n "__fish_netwright_using_subcommand place" -l port -d 'By the port they listen on' -r
complete -c netwright -n "__fish_netwright_using_subcommand place" -l unit -d 'By systemd unit, such as \'ceph-osd@*\'' -r
complete -c netwright -n "__fish_netwright_using_subcommand place" -l container -d 'By container name or id prefix' -r
complete -c netwright -n "__fish_netwright_using_subcommand place" -l cores -d 'Cores for each service [default: all free cores of its node, shared evenly]' -r
complete -c netwright -n "__fish_netwright_using_subcommand place" -l interrupt-cores -d 'Cores for each NIC\'s interrupts; 0 leaves interrupts alone [default: a quarter of the node\'s cores, at most one for each queue]' -r
complete -c netwright -n "__fish_netwright_using_subcommand place" -l root -d 'Read this directory tree, snapshot or sosreport instead of the running host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand place" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand place" -l lines -d 'Print the changes as lines for `tune plan` instead of the page'
complete -c netwright -n "__fish_netwright_using_subcommand place" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand place" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand place" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand place" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l level -d 'A level, two at least; the others are compared with the first' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l change -d 'A knob of `netwright tune` to try: its present value against this one. Repeat to change several knobs together' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l builds -d 'Two builds to compare: paths, or git revisions; a revision is in a worktree of its own that is kept; `{build}` in the workload is the path or the worktree' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l build-command -d 'The command that builds a revision, run by `sh -c` in its worktree, once for each commit [default: nothing is built]' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l budget -d 'Time budget of the experiment [default: 60s; the file\'s before that]' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l runs -d 'Or the number of runs of the whole experiment [default: what --budget permits]' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l min-effect -d 'Smallest relevant difference; the experiment ends early when it shows a smaller one [default: the file\'s; without one it does not end for that]' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l limit -d 'Exit with code 0 only if each metric is shown to be worse by less than this share (two levels); also the --min-effect where none is given' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l seed -d 'Seed of the random order of the runs [default: the clock]' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l responder -d 'Vary knobs of this host as well, `peer:KNOB`, over ssh: `ssh://[USER@]HOST[:PORT]`' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l record -d 'File of the record [default: NAME.jsonl, by flags prove-NUMBER.jsonl, in NETWRIGHT_STATE/prove; without that variable in /var/lib/netwright/prove as root, otherwise in ~/.local/state/netwright/prove]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand prove" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l workload -d 'A netwright measurement to run; `measure …` or `rtt://HOST`, `stream://`, `connect://`, `http://`, `pg://`, `redis://`, followed by its options; `{level}` in it stands for the level, otherwise the words of a level are appended' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l command -d 'Or any command, run by `sh -c`' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l metric -d 'A metric, its location and its better direction; `p50=runs.0.rtt_ns.p50:lower` in JSON, `tps=/tps = ([0-9.]+)/:higher` by a regular expression; `:lower:guard` for a guard' -r
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l freeze-host -d 'Freeze the host meanwhile: irqbalance paused, frequency governors at performance; both are restored at the end'
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l allow-disconnect -d 'Try also changes that may cut your own connection'
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l i-understand -d 'Try also settings that netwright does not know, and PCI registers, which may wedge a device'
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l resume -d 'Continue an interrupted experiment from its record; --record alone selects it'
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l status -d 'Only report the state of an experiment from its record, also while it runs; --record alone selects it'
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand prove" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand prove" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand prove" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand prove" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand report" -s o -l output -d 'Write the page to this file; `-` is standard output [default: standard output]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand report" -l format -d 'The form of the page [default: by the file\'s name; html]' -r -f -a "html\t'One file with charts, for a browser'
markdown\t'Text with tables, for a ticket or a pull request'"
complete -c netwright -n "__fish_netwright_using_subcommand report" -l title -d 'The title of the page [default: of the results]' -r
complete -c netwright -n "__fish_netwright_using_subcommand report" -l force -d 'Replace a file that exists'
complete -c netwright -n "__fish_netwright_using_subcommand report" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l bind -d 'Listen on this address; repeatable [default: 127.0.0.1 and ::1]' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l port -d 'The control port; 0 lets the kernel choose' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l unix -d 'Listen on a Unix socket too (alone, when nothing else is asked for)' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l data-ports -d 'Take the data ports, TCP and UDP, from this range [default: the kernel chooses]' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l secret-file -d 'Require the secret in this file; otherwise the one in NETWRIGHT_SECRET; otherwise, beyond loopback, a generated one that is printed' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l iperf3 -d 'Also serve stock iperf3 clients, on this port [default: 5201]; beyond loopback with --open' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l qperf -d 'Also serve stock qperf clients, on this port [default: 19765]; beyond loopback with --open' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l cpu -d 'Run the threads on these CPUs when the client does not specify CPUs [default: chosen]' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l service-time -d 'Busy-loop this long before each response, to simulate a known service time' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l max-tests -d 'Maximum of concurrent tests' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l max-flows -d 'Data connections of one test' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l max-memory -d 'Memory for all tests together, buffers in the kernel not counted' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l max-duration -d 'The longest time that a client\'s test may take' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l idle -d 'How long a client may be silent between tests' -r
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l open -d 'Require no secret beyond loopback: everybody who can reach this host can use the server'
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l no-pin -d 'Let the scheduler place the threads when the client does not specify CPUs'
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l softirq -d 'Add softirq time by context to the evidence, by eBPF (needs root)'
complete -c netwright -n "__fish_netwright_using_subcommand serve" -l json -d 'Write events as JSON, one object per line, to standard output'
complete -c netwright -n "__fish_netwright_using_subcommand serve" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand serve" -s v -l verbose -d 'Print each test that begins and each refused client'
complete -c netwright -n "__fish_netwright_using_subcommand serve" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -s o -l output -d 'The archive to write [default: HOST-DATE-TIME.tar.zst in this folder]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -l window -d 'How long to watch the counters, 100ms to 10m [default: 5s]' -r
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -l pid -d 'Processes with this id' -r
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -l name -d 'By short name or program file name' -r
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -l port -d 'By the port they listen on' -r
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -l unit -d 'By systemd unit, such as \'ceph-osd@*\'' -r
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -l container -d 'By container name or id prefix' -r
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -l force -d 'Overwrite an existing archive'
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -l redact -d 'Replace addresses, host names, MACs and command lines, the same way everywhere'
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand snapshot" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and not __fish_seen_subcommand_from plan apply confirm rollback status log persist profiles" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and not __fish_seen_subcommand_from plan apply confirm rollback status log persist profiles" -f -a "plan" -d 'Show the changes, their impact, and refused requests. Writes nothing'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and not __fish_seen_subcommand_from plan apply confirm rollback status log persist profiles" -f -a "apply" -d 'Make changes; the first failure undoes all'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and not __fish_seen_subcommand_from plan apply confirm rollback status log persist profiles" -f -a "confirm" -d 'Confirm a change, so that the watchdog does not undo it'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and not __fish_seen_subcommand_from plan apply confirm rollback status log persist profiles" -f -a "rollback" -d 'Restore the values from before a change'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and not __fish_seen_subcommand_from plan apply confirm rollback status log persist profiles" -f -a "status" -d 'Show the changes in force, and external changes since'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and not __fish_seen_subcommand_from plan apply confirm rollback status log persist profiles" -f -a "log" -d 'Show all changes ever made'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and not __fish_seen_subcommand_from plan apply confirm rollback status log persist profiles" -f -a "persist" -d 'Keep the changes in force over a reboot, in the distribution\'s own files'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and not __fish_seen_subcommand_from plan apply confirm rollback status log persist profiles" -f -a "profiles" -d 'Show the profiles: settings that belong together, each with its reason'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -l profile -d 'Take the lines of this profile (`netwright tune profiles` lists them), or of your own file. Lines that do not apply to this host are left out, with the reason' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -l nic -d 'The interfaces that the profile\'s `nic.*` stands for, separated by commas; repeatable [default: each physical interface that is up]' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -l state-dir -d 'Directory of the journal [default: NETWRIGHT_STATE or /var/lib/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -l root -d 'Work on this directory, with the layout of a host\'s root, instead of the running host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -l netns -d 'Enter this network namespace: a name of `ip netns`, or a path such as /proc/PID/ns/net' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -l container -d 'Enter the network namespace of this container, or of this process' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -l i-understand -d 'Also plan changes of settings that netwright does not know, values that lower something or do nothing, and PCI registers, which may wedge a device'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from plan" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l profile -d 'Take the lines of this profile (`netwright tune profiles` lists them), or of your own file. Lines that do not apply to this host are left out, with the reason' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l nic -d 'The interfaces that the profile\'s `nic.*` stands for, separated by commas; repeatable [default: each physical interface that is up]' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l confirm -d 'Undo all unless `tune confirm` comes within this time, 1s to 1h' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l link-wait -d 'Undo all when a member of a bond, team or bridge is not up in it again within this time after its link was reset, 1s to 1h' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l peer -d 'Check the path of a raised MTU to this host, instead of to the neighbours that answer; repeat for several' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l finish -d 'Complete this change, which a crash interrupted; with a watchdog (60 s, or --confirm) where it had one or may cut your own connection' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l state-dir -d 'Directory of the journal [default: NETWRIGHT_STATE or /var/lib/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l root -d 'Work on this directory, with the layout of a host\'s root, instead of the running host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l netns -d 'Enter this network namespace: a name of `ip netns`, or a path such as /proc/PID/ns/net' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l container -d 'Enter the network namespace of this container, or of this process' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l no-confirm -d 'Require no confirmation, whatever the impact'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l dry-run -d 'Check everything and write nothing'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l no-wait -d 'Fail at once when another netwright is changing the host'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l i-understand -d 'Also change settings that netwright does not know, take values that lower something or do nothing, write PCI registers, which may wedge a device, and keep an MTU that a neighbour does not carry'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from apply" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from confirm" -l state-dir -d 'Directory of the journal [default: NETWRIGHT_STATE or /var/lib/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from confirm" -l root -d 'Work on this directory, with the layout of a host\'s root, instead of the running host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from confirm" -l netns -d 'Enter this network namespace: a name of `ip netns`, or a path such as /proc/PID/ns/net' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from confirm" -l container -d 'Enter the network namespace of this container, or of this process' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from confirm" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from confirm" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from confirm" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from confirm" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from confirm" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l responder -d 'Act on this host, over ssh: `ssh://[USER@]HOST[:PORT]`' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l state-dir -d 'Directory of the journal [default: NETWRIGHT_STATE or /var/lib/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l root -d 'Work on this directory, with the layout of a host\'s root, instead of the running host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l netns -d 'Enter this network namespace: a name of `ip netns`, or a path such as /proc/PID/ns/net' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l container -d 'Enter the network namespace of this container, or of this process' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l tag -d 'Keep the run in the history under this word: `history list --tag WORD` finds it' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l store -d 'The history\'s file [default: NETWRIGHT_STORE; else history.sqlite in NETWRIGHT_STATE, as root in /var/lib/netwright, otherwise in $XDG_DATA_HOME/netwright or ~/.local/share/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l all -d 'All changes that are in force, were interrupted or are only partly rolled back, the last first'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l unfinished -d 'All changes that were interrupted, the last first: those of experiments, and others'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l force -d 'Overwrite external changes with the old value; without this option such a value is left unchanged and reported, with the written and the old value'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l dry-run -d 'Show the values that would be restored, and write nothing'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l no-wait -d 'Fail at once when another netwright is changing the host'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -l no-store -d 'Keep nothing; NETWRIGHT_STORE=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from rollback" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from status" -l responder -d 'Act on this host, over ssh: `ssh://[USER@]HOST[:PORT]`' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from status" -l state-dir -d 'Directory of the journal [default: NETWRIGHT_STATE or /var/lib/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from status" -l root -d 'Work on this directory, with the layout of a host\'s root, instead of the running host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from status" -l netns -d 'Enter this network namespace: a name of `ip netns`, or a path such as /proc/PID/ns/net' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from status" -l container -d 'Enter the network namespace of this container, or of this process' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from status" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from status" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from status" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from status" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from log" -l state-dir -d 'Directory of the journal [default: NETWRIGHT_STATE or /var/lib/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from log" -l root -d 'Work on this directory, with the layout of a host\'s root, instead of the running host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from log" -l netns -d 'Enter this network namespace: a name of `ip netns`, or a path such as /proc/PID/ns/net' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from log" -l container -d 'Enter the network namespace of this container, or of this process' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from log" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from log" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from log" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from log" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from log" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -l format -d 'Print this format instead of writing files' -r -f -a "ansible\t'Ansible tasks that write the same files'
shell\t'A script that sets the values now'
tuned\t'A profile for tuned'"
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -l into -d 'Write below this directory instead of below /, for an image or for inspection' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -l state-dir -d 'Directory of the journal [default: NETWRIGHT_STATE or /var/lib/netwright]' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -l root -d 'Work on this directory, with the layout of a host\'s root, instead of the running host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -l netns -d 'Enter this network namespace: a name of `ip netns`, or a path such as /proc/PID/ns/net' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -l container -d 'Enter the network namespace of this container, or of this process' -r
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -l remove -d 'Remove the files that were written, of this change or of all. The values in force stay: `tune rollback` restores the old ones'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -l dry-run -d 'Show the files that would be written, and write none'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -l no-wait -d 'Fail at once when another netwright is changing the host'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from persist" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from profiles" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from profiles" -l json -d 'Write one JSON document; `netwright schema NAME` prints its schema'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from profiles" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from profiles" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand tune; and __fish_seen_subcommand_from profiles" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l interval -d 'Length of an interval, 100ms to 1h' -r
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l duration -d 'End after this time [default: watch until Ctrl-C]' -r
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l softirq -d 'Softirq time, and the tasks that lose time to it. auto: scaled from the observed share of each interval, polls likewise; always: exact' -r -f -a "always\t'All the time: exact'
auto\t'For a share of each interval that costs no CPU more than 0.2% of its time'"
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l waits -d 'Where packets wait, by process' -r -f -a "auto\t'For a share of each interval that costs no CPU more than 0.2% of its time'
always\t'All the time, whatever it costs'
never\t'Not at all: attach no program for it'"
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l messages -d 'Sends and receives of processes' -r -f -a "auto\t'For a share of each interval that costs no CPU more than 0.2% of its time'
always\t'All the time, whatever it costs'
never\t'Not at all: attach no program for it'"
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l drops -d 'Dropped packets by reason' -r -f -a "auto\t'For a share of each interval that costs no CPU more than 0.2% of its time'
always\t'All the time, whatever it costs'
never\t'Not at all: attach no program for it'"
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l queues -d 'Polls of NICs\' queues' -r -f -a "auto\t'For a share of each interval that costs no CPU more than 0.2% of its time'
always\t'All the time, whatever it costs'
never\t'Not at all: attach no program for it'"
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l pid -d 'This process; its threads are followed, too (repeatable)' -r
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l nic -d 'This NIC, such as eth0 (repeatable)' -r
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l cpu -d 'These CPUs, such as 0-3,8' -r
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l record -d 'Record every interval in full in this file, whatever is shown' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l record-limit -d 'Recording stops at this size (compressed), watching continues' -r
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l replay -d 'Show a recording instead of this host' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l serve -d 'Serve the live view on this address, port or both, read only [default: 127.0.0.1, port 7472 or a free one]. Beyond loopback a browser needs a secret: the one in --secret-file, otherwise in NETWRIGHT_SECRET, otherwise a generated one that is printed' -r
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l secret-file -d 'Require the secret in this file, also on loopback' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand watch" -s o -l output -d 'Write to this file instead of standard output; an existing file is replaced' -r -F
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l no-bpf -d 'Attach no eBPF programs: only data from /proc. NETWRIGHT_BPF=off in the environment does it for every command'
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l force -d 'Overwrite an existing recording'
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l plain -d 'Write text instead of the view, also on a terminal'
complete -c netwright -n "__fish_netwright_using_subcommand watch" -s q -l quiet -d 'No progress and no notes on standard error'
complete -c netwright -n "__fish_netwright_using_subcommand watch" -s v -l verbose -d 'Print the details that are left out for brevity'
complete -c netwright -n "__fish_netwright_using_subcommand watch" -l json -d 'Write JSON, one object a line for each interval (their schema: netwright schema watch)'
complete -c netwright -n "__fish_netwright_using_subcommand watch" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand schema" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c netwright -n "__fish_netwright_using_subcommand help; and not __fish_seen_subcommand_from units exit-codes missing-values secrets placement" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand help; and not __fish_seen_subcommand_from units exit-codes missing-values secrets placement" -f -a "units" -d 'Durations, sizes and rates, as they are typed and printed'
complete -c netwright -n "__fish_netwright_using_subcommand help; and not __fish_seen_subcommand_from units exit-codes missing-values secrets placement" -f -a "exit-codes" -d 'What a script learns from the end of a command'
complete -c netwright -n "__fish_netwright_using_subcommand help; and not __fish_seen_subcommand_from units exit-codes missing-values secrets placement" -f -a "missing-values" -d 'Why absent is not zero, and denied is not absent'
complete -c netwright -n "__fish_netwright_using_subcommand help; and not __fish_seen_subcommand_from units exit-codes missing-values secrets placement" -f -a "secrets" -d 'Where secrets come from, and where they never go'
complete -c netwright -n "__fish_netwright_using_subcommand help; and not __fish_seen_subcommand_from units exit-codes missing-values secrets placement" -f -a "placement" -d 'Which CPU does which work, and how to choose'
complete -c netwright -n "__fish_netwright_using_subcommand help; and __fish_seen_subcommand_from units" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand help; and __fish_seen_subcommand_from exit-codes" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand help; and __fish_seen_subcommand_from missing-values" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand help; and __fish_seen_subcommand_from secrets" -s h -l help -d 'Print help'
complete -c netwright -n "__fish_netwright_using_subcommand help; and __fish_seen_subcommand_from placement" -s h -l help -d 'Print help'
