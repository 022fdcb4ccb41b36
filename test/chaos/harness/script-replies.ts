import type { TcpProxy } from './tcp-proxy.js';

/** How a reply of `deduct` begins: a list, whose first element is the word. Other scripts answer the same words bare. */
const deductReply = (word: string): RegExp => new RegExp(`\\*\\d+\\r\\n\\$${word.length}\\r\\n${word}\\r\\n`, 'g');

/**
 * Counts the answers of `deduct` that come through a proxy before Redis from here on.
 * @returns how many there were so far with this word
 */
export function countDeductReplies(proxy: TcpProxy, word: 'deducted' | 'already_deducted' | 'aborted'): () => number {
  const pattern = deductReply(word);
  let count = 0;
  proxy.meddle = (what, chunk) => {
    if (what === 'replies') count += chunk.toString('latin1').match(pattern)?.length ?? 0;
    return true;
  };
  return () => count;
}
