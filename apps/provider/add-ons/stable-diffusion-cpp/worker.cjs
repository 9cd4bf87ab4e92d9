/**
 * Runs stable-diffusion.cpp in the Bare runtime, which its add-on is made for. Speaks JSON, one message a line, on descriptor 3,
 * and ends when the other side closes it. The first argument is the folder that the add-on's packages lie in.
 */
const packages = Bare.argv[2];
const Pipe = require(`${packages}/bare-pipe`);
const os = require(`${packages}/bare-os`);
const { ImgStableDiffusion } = require(`${packages}/@qvac/diffusion-cpp`);

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

let unread = '';
channel
  .on('data', (bytes) => {
    unread += bytes.toString();
    for (let end = unread.indexOf('\n'); end >= 0; end = unread.indexOf('\n')) {
      const line = unread.slice(0, end);
      unread = unread.slice(end + 1);
      handle(JSON.parse(line)).catch((error) => send({ type: 'failed', message: String(error?.message ?? error) }));
    }
  })
  // An ordinary exit waits for the model's threads, which wait for work; there is nothing here to save.
  .on('end', () => os.kill(os.pid(), 'SIGKILL'));
