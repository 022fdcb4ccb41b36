/** One queue, and the figures that a table has of it. */
export interface QueueFigures {
  readonly topic: string;
  readonly queueId: number;
  readonly figures: Readonly<Record<string, number>>;
}

/**
 * A table of offsets. Its keys are objects, `{"offsetTable":{{"brokerName":"a","queueId":0,"topic":"t"}:{…}}}`, which JSON
 * does not allow.
 * @throws Error when a queue lacks one of the figures that are wanted
 */
export function readOffsetTable(body: string, wanted: readonly string[]): QueueFigures[] {
  const found: QueueFigures[] = [];
  for (const [, key = '', value = ''] of body.matchAll(/\{([^{}]*"queueId":[^{}]*)\}\s*:\s*\{([^{}]*)\}/g)) {
    const { topic, queueId } = JSON.parse(`{${key}}`) as { topic: string; queueId: number };
    const figures = JSON.parse(`{${value}}`) as Record<string, number>;
    for (const name of wanted) if (typeof figures[name] !== 'number') throw new Error(`the answer has no ${name}`);
    found.push({ topic, queueId, figures });
  }
  return found;
}
