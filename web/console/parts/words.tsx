import type { LiveSale, Sale } from '../api/types.js';
import { wordIn } from '../i18n/language.js';
import { largest } from '../logic/largest.js';
import type { Counts } from '../api/types.js';
import { toneOfPurchase, type Tone } from '../logic/time-line.js';
import { useWords } from '../shell/hooks.js';
import { Badge } from './basics.js';

/** Colours for words of the API, by their meaning. */

const SALE_TONES: Readonly<Record<string, Tone>> = {
  open: 'ok',
  paused: 'warn',
  repair: 'bad',
  warm: 'info',
  draft: 'idle',
  closed: 'idle',
};

export function SaleState({
  state,
  retired,
}: {
  readonly state: Sale['state'] | LiveSale['state'];
  readonly retired?: boolean;
}) {
  const { t } = useWords();
  const word = retired ? 'retired' : state;
  return (
    <Badge tone={SALE_TONES[word] ?? 'idle'} title={word}>
      {wordIn(t.sale.states, word)}
    </Badge>
  );
}

export function PurchaseState({ state }: { readonly state: string }) {
  const { t } = useWords();
  return (
    <Badge tone={toneOfPurchase(state)} title={state}>
      {wordIn(t.purchases.standings, state)}
    </Badge>
  );
}

/** Refusals by their code, the most frequent first. */
export function Refusals({ counts, most = 3 }: { readonly counts: Counts; readonly most?: number }) {
  const { t, f } = useWords();
  const { words, others } = largest(counts, most);
  return (
    <ul class="chips">
      {words.map(([word, count]) => (
        <li key={word} title={word}>
          {wordIn(t.codes, word)} <b class="number">{f.number(count)}</b>
        </li>
      ))}
      {others > 0 && <li>{t.live.otherRefusals(f.number(others))}</li>}
    </ul>
  );
}
