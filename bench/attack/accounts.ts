import { Agent, request } from 'node:http';
import { addressIn, type NetworkName } from './attackers.js';

// Accounts that answer to what they are told, each from an address of its own: for loads that are no flood.

/** How often a group asked, and what it heard. */
export interface Tally {
  sent: number;
  answered: number;
  readonly byWord: Record<string, number>;
}

export const newTally = (): Tally => ({ sent: 0, answered: 0, byWord: {} });

export const wordsOf = ({ byWord }: Tally): string =>
  Object.entries(byWord)
    .sort(([, one], [, other]) => other - one)
    .map(([word, count]) => `${word} × ${count.toLocaleString('en')}`)
    .join(', ');

export function count(tally: Tally, answer: Answered | null): void {
  if (answer === null) return;
  tally.answered++;
  const word = typeof answer.body.code === 'string' ? answer.body.code : String(answer.status);
  tally.byWord[word] = (tally.byWord[word] ?? 0) + 1;
}

/** A client of each address, with its connections. */
export class Clients {
  readonly #agents = new Map<string, Agent>();

  at(network: NetworkName, place: number): Agent {
    const localAddress = addressIn(network, place);
    const known = this.#agents.get(localAddress);
    if (known) return known;
    const agent = new Agent({ keepAlive: true, maxSockets: 4, localAddress });
    this.#agents.set(localAddress, agent);
    return agent;
  }

  end(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }
}

export interface Answered {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
}

interface Asked {
  readonly token: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/** Null: no answer came. */
export const post = (url: string, agent: Agent, asked: Asked): Promise<Answered | null> =>
  ask('POST', url, agent, asked);
export const get = (url: string, agent: Agent, asked: Asked): Promise<Answered | null> => ask('GET', url, agent, asked);

function ask(
  method: 'GET' | 'POST',
  url: string,
  agent: Agent,
  { token, headers = {}, body = '' }: Asked,
): Promise<Answered | null> {
  return new Promise((resolve) => {
    const type = body === '' ? {} : { 'Content-Type': 'application/json' };
    const length = { 'Content-Length': String(body.length) };
    const asked = request(url, {
      method,
      agent,
      headers: { Authorization: `Bearer ${token}`, ...type, ...length, ...headers },
    });
    asked.on('error', () => resolve(null));
    asked.on('response', (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (more: string) => (text += more));
      response.on('error', () => resolve(null));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: JSON.parse(text || '{}') }));
    });
    asked.end(body);
  });
}
