import { after } from '../../../src/core/after.js';
import { backOffMs } from '../../client/back-off.js';
import type { TabStorage } from '../../shared/tab-storage.js';
import { Store } from '../logic/store.js';
import { apiErrorOf, type ApiError } from './api-error.js';
import type { Me } from './types.js';

/**
 * Name of the token in the storage of the tab. The token exists only there and in the memory of the page, and is gone
 * when the tab closes.
 */
const KEY = 'seckill.console.token';

export type SessionState =
  | { readonly is: 'signed_out' }
  /** A token from before a reload is being checked. */
  | { readonly is: 'checking' }
  /** The API does not say whether the old token is still good. The token is kept, and the check is repeated. */
  | { readonly is: 'unreachable'; readonly error: ApiError }
  /** The screen stays behind the request for a new token, even if another user signs in. */
  | { readonly is: 'ended'; readonly me: Me; readonly why: 'expired' | 'refused' }
  | { readonly is: 'signed_in'; readonly me: Me };

export class Session {
  readonly state: Store<SessionState>;
  readonly #storage: TabStorage;
  readonly #ask: (token: string) => Promise<Me>;
  #token: string | null;
  /** Timer until the end of the token, or until the next attempt. */
  #stopTimer: (() => void) | undefined;
  /** Number of attempts to resume with the token from before a reload. 0 if none is under way. */
  #tries = 0;

  /** @param ask returns the user of a token; rejects if the token is refused or no answer comes */
  constructor(storage: TabStorage, ask: (token: string) => Promise<Me>) {
    this.#storage = storage;
    this.#ask = ask;
    this.#token = storage.read(KEY);
    this.state = new Store<SessionState>(this.#token === null ? { is: 'signed_out' } : { is: 'checking' });
  }

  get token(): string | null {
    return this.#token;
  }

  /** Resumes with the token that the tab had before a reload. Retries by itself if no answer comes. Never rejects. */
  async restore(): Promise<void> {
    const token = this.#token;
    if (token === null) return;
    this.#stopTimer?.();
    const tries = ++this.#tries;
    const isOver = (): boolean => tries !== this.#tries; // the user has since signed out, or another check has begun
    try {
      const me = await this.#ask(token);
      if (!isOver()) this.#enter(token, me);
    } catch (error) {
      if (isOver()) return;
      const seen = apiErrorOf(error);
      if (seen.status === 401 || seen.code === 'role_needed') return this.signOut();
      this.#stopTimer = after(backOffMs(tries, null, Math.random()), () => void this.restore());
      this.state.set({ is: 'unreachable', error: seen });
    }
  }

  /** @throws the error of `ask`; then nothing has changed */
  async signIn(token: string): Promise<void> {
    this.#enter(token, await this.#ask(token));
  }

  /** The API refused the token: it has expired or was revoked. */
  refused(token: string): void {
    if (token === this.#token) this.#end('refused'); // an answer to an older token says nothing about this token
  }

  signOut(): void {
    this.#forget();
    this.state.set({ is: 'signed_out' });
  }

  #enter(token: string, me: Me): void {
    this.#token = token;
    this.#tries = 0;
    this.#storage.write(KEY, token);
    this.state.set({ is: 'signed_in', me });
    this.#endAt(me.expiresAtMs);
  }

  #endAt(atMs: number): void {
    this.#stopTimer?.();
    this.#stopTimer = after(Math.max(0, atMs - Date.now()), () => this.#end('expired'));
  }

  #end(why: 'expired' | 'refused'): void {
    const { value } = this.state;
    this.#forget();
    this.state.set(value.is === 'signed_in' ? { is: 'ended', me: value.me, why } : { is: 'signed_out' });
  }

  #forget(): void {
    this.#stopTimer?.();
    this.#tries = 0;
    this.#token = null;
    this.#storage.remove(KEY);
  }
}
