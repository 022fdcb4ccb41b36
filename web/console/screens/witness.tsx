import type { WitnessFinding } from '../api/types.js';
import { Ago, Cut, Time } from '../parts/basics.js';
import { Closable, OrderLink } from '../parts/closable.js';
import { useWords } from '../shell/hooks.js';

/** Shows open findings of the witness: changes that no program makes. Shows nothing if there are none. */
export function WitnessFindings() {
  const { t } = useWords();
  const words = t.reconcile.witness;
  return (
    <Closable<WitnessFinding>
      path="/admin/v1/witness/findings"
      rows="findings"
      idOf={({ findingId }) => findingId}
      subject="witness_finding"
      words={words}
      columns={[
        { name: words.kind, width: '200px', phoneWidth: '140px', cell: ({ kind }) => t.reconcile.witness.kinds[kind] },
        { name: t.common.order, hides: 'phone', width: '170px', cell: OrderLink },
        { name: words.detail, hides: 'phone', cell: ({ detail }) => <Cut text={detail} lang="en" /> },
        { name: words.committed, width: '100px', cell: ({ committedAt }) => <Ago at={committedAt} /> },
      ]}
      facts={({ kind, orderId, detail, committedAt }) => [
        [words.kind, t.reconcile.witness.kinds[kind]],
        [t.common.order, <OrderLink orderId={orderId} />],
        [words.detail, <span lang="en">{detail}</span>],
        [words.committed, <Time at={committedAt} />],
      ]}
    />
  );
}
