// Server-Sent Events read by fetch: EventSource cannot send a token.

const SILENCE = 45_000; // ms: three comments of the server's that did not come

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function headers(token) {
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** Each event as {type, data}, until the stream ends. Throws `Refused`, or what fetch throws. */
export async function* events(url, token) {
  const stop = new AbortController();
  let silence = setTimeout(() => stop.abort(), SILENCE);
  try {
    const answer = await fetch(url, { headers: headers(token), signal: stop.signal, cache: "no-store" });
    if (!answer.ok) throw new Refused(answer.status, (await answer.text()).trim());
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let parts = [];
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(() => stop.abort(), SILENCE);
      // An event of megabytes comes in many pieces: they are joined once, at its end.
      let rest = value;
      for (let end = ending(parts, rest); end >= 0; end = ending(parts, rest)) {
        yield* parsed(parts.join("") + rest.slice(0, end));
        rest = rest.slice(end);
        parts = [];
      }
      if (rest) parts.push(rest);
    }
  } finally {
    clearTimeout(silence);
    stop.abort();
  }
}

/** Where the blank line ends in the newest piece, -1 where it is not there yet; it may lie between two pieces. */
function ending(parts, rest) {
  if (rest.startsWith("\n") && parts.length && parts.at(-1).endsWith("\n")) return 1;
  const place = rest.indexOf("\n\n");
  return place < 0 ? -1 : place + 2;
}

function* parsed(text) {
  let type = "";
  const data = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("event: ")) type = line.slice(7);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  if (data.length) yield { type, data: JSON.parse(data.join("\n")) };
}
