/**
 * Worker process of the image process: runs stable-diffusion.cpp, whose add-on needs the Bare runtime.
 *
 * Messages are JSON lines on file descriptor 3. The process ends when the image process closes the descriptor. Argument: the
 * folder of the add-on's packages (`node_modules`).
 */
const packages = Bare.argv[2];
const Pipe = require(`${packages}/bare-pipe`);
const os = require(`${packages}/bare-os`);
const { ImgStableDiffusion } = require(`${packages}/@qvac/diffusion-cpp`);

const NEWLINE = 0x0a;

const channel = new Pipe(3);
let model = null;
let running = null;

function send(message) {
  channel.write(`${JSON.stringify(message)}\n`);
}

async function load({ files, config }) {
  model = new ImgStableDiffusion({ files, config, logger: null });
  await model.load();
  send({ type: 'loaded' });
}

async function draw({ params }) {
  running = await model.run(params);
  try {
    await running
      .onUpdate((news) => {
        if (news instanceof Uint8Array) send({ type: 'image', base64: Buffer.from(news).toString('base64') });
        else send({ type: 'progress', news: JSON.parse(news) });
      })
      .await();
  } finally {
    running = null;
  }
  send({ type: 'drawn' });
}

async function handle(message) {
  switch (message.type) {
    case 'load':
      return await load(message);
    case 'draw':
      return await draw(message);
    case 'cancel':
      return await running?.cancel();
  }
}

// Lines are split as bytes, because a character may lie on the border of two chunks.
let unread = [];
channel
  .on('data', (bytes) => {
    let start = 0;
    for (let end = bytes.indexOf(NEWLINE); end >= 0; end = bytes.indexOf(NEWLINE, start)) {
      const line = Buffer.concat([...unread, bytes.subarray(start, end)]).toString();
      unread = [];
      start = end + 1;
      handle(JSON.parse(line)).catch((error) => send({ type: 'failed', message: String(error?.message ?? error) }));
    }
    if (start < bytes.length) unread.push(bytes.subarray(start));
  })
  // An ordinary exit would wait for the model's idle threads, and the process has no state to save.
  .on('end', () => os.kill(os.pid(), 'SIGKILL'));
