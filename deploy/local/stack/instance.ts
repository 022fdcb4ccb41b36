import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { listeningPorts } from './listening-ports.js';
import { DEFAULT_PORTS, parsePorts, pickFreePorts, type StackPorts } from './ports.js';
import { explainFileError, StackError } from './stack-error.js';

/** Which ports an instance gets at its first start: the default ones, free ones, or those given. */
export type PortChoice = 'default' | 'free' | StackPorts;

/**
 * The ports of an instance. They are chosen once and remembered, since other places store them (routes in the broker,
 * URLs in the settings of people); a later choice does not change them.
 */
export function loadPorts(instanceFile: string, choice: PortChoice): StackPorts {
  const remembered = readPorts(instanceFile);
  if (remembered !== null) return remembered;
  if (choice === 'default') return DEFAULT_PORTS;
  return choice === 'free' ? pickFreePorts(listeningPorts()) : parsePorts(choice, 'The choice of ports');
}

export function rememberPorts(instanceFile: string, ports: StackPorts): void {
  mkdirSync(dirname(instanceFile), { recursive: true });
  const draft = `${instanceFile}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify({ ports }, null, 2)}\n`);
  renameSync(draft, instanceFile);
}

function readPorts(instanceFile: string): StackPorts | null {
  let text: string;
  try {
    text = readFileSync(instanceFile, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw explainFileError(error, dirname(instanceFile));
  }
  let parsed: { ports?: unknown };
  try {
    parsed = JSON.parse(text) as { ports?: unknown };
  } catch (cause) {
    throw new StackError(`${instanceFile} is damaged; delete it and choose the ports again.`, { cause });
  }
  return parsePorts(parsed.ports, instanceFile);
}
