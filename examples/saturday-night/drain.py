"""Answer each drain of a worker: take it out of the pool, and say when that is done."""

import http.server

import standardwebhooks

SECRET = standardwebhooks.Webhook("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3")


class Pool(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        data = SECRET.verify(body, dict(self.headers))["data"]
        print(data["instance_name"], "is drained before", data["comes"], flush=True)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"drained": true}')


http.server.HTTPServer(("127.0.0.1", 8080), Pool).serve_forever()
