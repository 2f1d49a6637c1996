/**
 * Perl for a daemon by the book that gives itself another name, by which it loses its environment, and holds neither
 * output nor input. Its arguments: where it writes its id once it is one (`<path>.done`), its working folder, and a file
 * to hold open.
 */
export const daemonPerl = `
  use POSIX ();
  exit if fork; POSIX::setsid(); exit if fork;
  $0 = "quietd";
  chdir $ARGV[1];
  open(STDIN, "<", "/dev/null"); open(STDOUT, ">", "/dev/null"); open(STDERR, ">", "/dev/null");
  open(my $held, ">>", $ARGV[2]) if $ARGV[2];
  open(my $note, ">", $ARGV[0]); print $note $$; close $note; rename $ARGV[0], $ARGV[0] . ".done";
  sleep 600;
`

/** A shell line that starts one with its working folder at `cwd` and waits until it is there. */
export const startDaemon = (note: string, cwd: string): string =>
  `perl -e '${daemonPerl}' '${note}' "${cwd}"; until test -e '${note}.done'; do sleep 0.02; done`
