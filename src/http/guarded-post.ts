import { CANCELLED, lookup as lookUpInSystem, Resolver, TIMEOUT } from 'node:dns/promises';
import type { LookupAddress } from 'node:dns';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import http, { type IncomingMessage } from 'node:http';
import https from 'node:https';
import { isIP, type LookupFunction } from 'node:net';

/** Time limit of a whole call: look-up, connection and answer. */
const CALL_MAX_MS = 5_000;
/** Nothing in the answer is used but its status. */
const ANSWER_BYTES_MAX = 16_384;
/** Shorter than the time for which servers keep an idle connection, because a request on a closed connection fails. */
const IDLE_MAX_MS = 2_000;
/** Time limit of one query to one name server. */
const TRY_MS = 1_500;
const HOSTS_FILE = '/etc/hosts';

/** Says why an address must not be called, as a predicate. Null: it may be called. */
type FlawOfAddress = (address: string, isEncrypted: boolean) => string | null;

export interface PostOptions {
  readonly callMaxMs?: number;
  /** If absent, the name servers of the system. */
  readonly nameServers?: readonly string[];
  readonly hostsFile?: string;
}

/**
 * Posts a body to a valid URL of a third party. Never rejects.
 * @returns the status of the answer, or why there is no answer, without any text of the receiver
 */
type GuardedPost = (url: string, headers: Record<string, string>, body: string) => Promise<number | string>;

/**
 * Opens posts that connect only to an address which was checked, because a name may lead somewhere else a moment later,
 * and that follow no redirect.
 */
export function createGuardedPost(flawOf: FlawOfAddress, options: PostOptions = {}): GuardedPost {
  const { callMaxMs = CALL_MAX_MS } = options;
  const kept = { keepAlive: true, timeout: IDLE_MAX_MS };
  const agents = { http: new http.Agent(kept), https: new https.Agent(kept) };
  const lookup = createCheckedLookup(flawOf, { ...options, callMaxMs });
  return async (text, headers, body) => {
    const url = new URL(text);
    const isEncrypted = url.protocol === 'https:';
    const signal = AbortSignal.timeout(callMaxMs);
    const agent = isEncrypted ? agents.https : agents.http;
    try {
      return await post(url, { method: 'POST', agent, lookup: lookup(isEncrypted), signal, headers }, body);
    } catch (error) {
      if (error instanceof WrongAddress) return error.message;
      const { name, code } = error as NodeJS.ErrnoException;
      if (signal.aborted || code === CANCELLED) return `no answer within ${callMaxMs / 1000} s`;
      return typeof code === 'string' ? code : name;
    }
  };
}

/** Rejects if the connection ends before the answer does. @returns the status */
async function post(url: URL, options: https.RequestOptions, body: string): Promise<number> {
  const { request } = url.protocol === 'https:' ? https : http;
  const req = request(url, options).on('error', () => undefined); // `once` and the answer report it
  req.end(body);
  const [res] = (await once(req, 'response')) as [IncomingMessage];
  let bytes = 0;
  for await (const part of res) if ((bytes += part.length) > ANSWER_BYTES_MAX) break;
  return res.statusCode ?? 0;
}

/** The host has an address that must not be called. */
class WrongAddress extends Error {}

/** Opens a look-up that finds only addresses which may be called. */
function createCheckedLookup(
  flawOf: FlawOfAddress,
  { callMaxMs, nameServers, hostsFile = HOSTS_FILE }: PostOptions & { readonly callMaxMs: number },
) {
  /** Look-ups under way, by host. All calls to a host share one. */
  const open = new Map<string, Promise<LookupAddress[]>>();
  let lastOfSystem: Promise<unknown> = Promise.resolve();

  /**
   * Looks into the hosts file first, as the system does. Then asks DNS without a thread of the process, because a silent
   * name server would hold it, and the process has four. Names that DNS does not know may need a search domain. The
   * system looks them up, one at a time.
   */
  const find = async (host: string): Promise<LookupAddress[]> => {
    const listed = await addressesIn(hostsFile, host);
    if (listed.length > 0) return listed;
    const resolver = new Resolver({ timeout: TRY_MS, tries: 2 });
    if (nameServers !== undefined) resolver.setServers(nameServers);
    AbortSignal.timeout(callMaxMs).addEventListener('abort', () => resolver.cancel());
    const answers = await Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const found = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []));
    if (found.length > 0) return found.map((address) => ({ address, family: isIP(address) }));
    for (const answer of answers) {
      if (answer.status === 'rejected' && [TIMEOUT, CANCELLED].includes(answer.reason.code)) throw answer.reason;
    }
    const ofSystem = lastOfSystem.then(() => lookUpInSystem(host, { all: true }));
    lastOfSystem = ofSystem.catch(() => undefined);
    return ofSystem;
  };

  const checked = async (host: string, isEncrypted: boolean): Promise<LookupAddress[]> => {
    const finding = open.get(host) ?? find(host).finally(() => open.delete(host));
    open.set(host, finding);
    const found = await finding;
    for (const { address } of found) {
      const flaw = flawOf(address, isEncrypted);
      if (flaw !== null) throw new WrongAddress(`the host has the address ${address}, which ${flaw}`);
    }
    return found;
  };

  return (isEncrypted: boolean): LookupFunction =>
    (host, { all }, answer) =>
      void checked(host, isEncrypted).then(
        (found) => (all === true ? answer(null, found) : answer(null, found[0]?.address ?? '', found[0]?.family)),
        (error) => answer(error, ''),
      );
}

/** Returns the addresses that a hosts file gives a host. A file that cannot be read gives none. */
async function addressesIn(hostsFile: string, host: string): Promise<LookupAddress[]> {
  const text = await readFile(hostsFile, 'utf8').catch(() => '');
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = line.replace(/#.*/, '').trim().toLowerCase().split(/\s+/);
    const family = isIP(address);
    return family !== 0 && names.includes(host.toLowerCase()) ? [{ address, family }] : [];
  });
}
