// aws4fetch against the endpoint in env.S3: a signed request, a signed link, a wrong secret.
import { AwsClient } from "aws4fetch";

export default {
  async fetch(request, env) {
    const client = new AwsClient({ accessKeyId: env.KEY_ID, secretAccessKey: env.SECRET, service: "s3", region: "auto" });
    const address = `${env.S3}/links/report?version=1`;
    const put = await client.fetch(address, { method: "PUT", body: "figures" });
    const link = await client.sign(address, { aws: { signQuery: true } });
    const got = await fetch(link.url);
    const eve = new AwsClient({ accessKeyId: env.KEY_ID, secretAccessKey: "guessed", service: "s3", region: "auto", retries: 0 });
    return Response.json({ put: put.status, got: await got.text(), eve: (await eve.fetch(address)).status });
  },
};
