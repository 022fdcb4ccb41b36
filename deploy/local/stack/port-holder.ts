import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { listeningPorts } from './listening-ports.js';
import type { ClaimedPort } from './ports.js';
import { StackError } from './stack-error.js';

export interface PortHolder {
  readonly pid: number;
  /** Command line, cut to a readable length. */
  readonly command: string;
}

/** Java class paths run to kilobytes. */
const COMMAND_LENGTH_MAX = 80;

/** Finds who has a socket open. Sees only processes of this user, unless run as root. */
function findHolder(inode: string): PortHolder | null {
  const wanted = `socket:[${inode}]`;
  for (const entry of readdirSync('/proc')) {
    if (!/^\d+$/.test(entry) || !hasOpen(`/proc/${entry}/fd`, wanted)) continue;
    return { pid: Number(entry), command: commandOf(Number(entry)) };
  }
  return null;
}

function hasOpen(fdDir: string, wanted: string): boolean {
  try {
    return readdirSync(fdDir).some((fd) => linkOf(`${fdDir}/${fd}`) === wanted);
  } catch {
    return false; // gone by now, or not ours to look at
  }
}

function linkOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null; // closed since readdir
  }
}

/** The command line of a process, for people to recognise it. */
function commandOf(pid: number): string {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
    return command.length > COMMAND_LENGTH_MAX ? `${command.slice(0, COMMAND_LENGTH_MAX)}…` : command;
  } catch {
    return 'unknown command';
  }
}

export function portInUseSentence({ port, label }: ClaimedPort, holder: PortHolder | null): string {
  const who = holder === null ? 'another process (of another user?)' : `pid ${holder.pid} (${holder.command})`;
  return (
    `Port ${port} (${label}) is in use by ${who}; stop it, ` +
    `or start an instance elsewhere with \`stack up --dir <folder> --free-ports\`.`
  );
}

/** @throws StackError naming the first of these ports that somebody listens on, and who that is. */
export function assertPortsFree(claimed: readonly ClaimedPort[]): void {
  const listening = listeningPorts();
  for (const one of claimed) {
    const busy = listening.find(({ port }) => port === one.port);
    if (busy !== undefined) throw new StackError(portInUseSentence(one, findHolder(busy.inode)));
  }
}
