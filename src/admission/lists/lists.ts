import { z } from 'zod';
import { readNetwork, readAddress, type Address } from '../../core/ip-address.js';
import { isUserId } from '../../core/ids.js';
import { mode, type Layer, type Refused, type RulesOf, type Mode, type AdmissionRequest } from '../layer.js';
import { NetworkSet } from './network-set.js';

/** Limits the size of the rules. Look-ups use hashes. */
const LISTED_MAX = 10_000;
/** Limits the work per request, which searches the user agent for each part. */
const AGENTS_MAX = 100;
const AGENT_PART_LENGTH_MAX = 200;

const network = z
  .string()
  .refine(
    (text) => readNetwork(text) !== null,
    'must be an IP address or a network such as 10.0.0.0/8 or 2001:db8::/32',
  );
const agent = z.string().trim().min(1, 'must not be empty').max(AGENT_PART_LENGTH_MAX);
const user = z.string().refine(isUserId, 'must be the id of a user');

const allowAndDeny = <T extends z.ZodType>(item: T, max: number) =>
  z.strictObject({ allow: z.array(item).max(max).default([]), deny: z.array(item).max(max).default([]) }).prefault({});

/** The rules for permanent refusals. In each list, `allow` beats `deny`. A request in neither list proceeds. */
export const listsRules = z.strictObject({
  mode: mode.default('off'),
  addresses: allowAndDeny(network, LISTED_MAX),
  /** Parts of a user agent, in any case. */
  agents: allowAndDeny(agent, AGENTS_MAX),
  /** Ids of users, as in their tokens. */
  users: allowAndDeny(user, LISTED_MAX),
});
export type ListsRules = z.infer<typeof listsRules>;

/** Only this many characters of a user agent are read. No browser sends more. */
const AGENT_LENGTH_MAX = 1000;

const DENIED: Refused = { word: 'denied', retryAfterMs: null };

export class Lists implements Layer {
  readonly name = 'lists';
  readonly #rules: RulesOf<ListsRules>;
  /** The lists in a form that is fast to search. */
  readonly #indexes = new WeakMap<ListsRules, ListsIndex>();

  constructor(rules: RulesOf<ListsRules>) {
    this.#rules = rules;
  }

  modeOf(userId: string | null): Mode {
    return this.#rules(userId).mode;
  }

  anonymous({ address, agent }: AdmissionRequest): Refused | null {
    const index = this.#indexFor(null);
    return index.refusesAddress(address) || index.refusesAgent(agent) ? DENIED : null;
  }

  buyer(_request: AdmissionRequest, userId: string): Refused | null {
    return this.#indexFor(userId).refusesUser(userId) ? DENIED : null;
  }

  operator(userId: string): Refused | null {
    return this.#indexFor(null).refusesUser(userId) ? DENIED : null;
  }

  #indexFor(userId: string | null): ListsIndex {
    const rules = this.#rules(userId);
    let index = this.#indexes.get(rules);
    if (index === undefined) this.#indexes.set(rules, (index = new ListsIndex(rules)));
    return index;
  }
}

class ListsIndex {
  readonly #addresses: AllowAndDeny<NetworkSet>;
  readonly #agents: AllowAndDeny<readonly string[]>;
  readonly #users: AllowAndDeny<ReadonlySet<string>>;

  constructor({ addresses, agents, users }: ListsRules) {
    const lower = (parts: readonly string[]): string[] => parts.map((part) => part.toLowerCase());
    this.#addresses = { allow: new NetworkSet(addresses.allow), deny: new NetworkSet(addresses.deny) };
    this.#agents = { allow: lower(agents.allow), deny: lower(agents.deny) };
    this.#users = { allow: new Set(users.allow), deny: new Set(users.deny) };
  }

  refusesAddress(text: string): boolean {
    const { allow, deny } = this.#addresses;
    if (deny.isEmpty) return false;
    const address: Address | null = readAddress(text);
    return address !== null && deny.has(address) && !allow.has(address);
  }

  refusesAgent(text: string): boolean {
    const { allow, deny } = this.#agents;
    if (deny.length === 0) return false;
    const agent = text.slice(0, AGENT_LENGTH_MAX).toLowerCase();
    const holds = (part: string): boolean => agent.includes(part);
    return deny.some(holds) && !allow.some(holds);
  }

  refusesUser(userId: string): boolean {
    const { allow, deny } = this.#users;
    return deny.has(userId) && !allow.has(userId);
  }
}

interface AllowAndDeny<T> {
  readonly allow: T;
  readonly deny: T;
}
