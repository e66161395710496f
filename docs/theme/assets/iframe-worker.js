// Browsers start no worker for a page that is a file. There the search's script runs in a hidden frame instead; the
// theme looks for this class by its name.
if (location.protocol === "file:") {
    window.IFrameWorker = class extends EventTarget {
        #queue = [];
        #frame = document.createElement("iframe");

        constructor(url) {
            super();
            this.#frame.hidden = true;
            document.body.append(this.#frame);
            const inside = this.#frame.contentWindow;
            inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
            inside.importScripts = (...addresses) => addresses.reduce((before, address) => before.then(() => this.#load(address)), Promise.resolve());
            void this.#load(url).then(() => {
                const waiting = this.#queue;
                this.#queue = null;
                waiting.forEach((data) => this.postMessage(data));
            });
        }

        postMessage(data) {
            if (this.#queue) {
                this.#queue.push(data);
            } else {
                const inside = this.#frame.contentWindow;
                inside.dispatchEvent(new inside.MessageEvent("message", { data }));
            }
        }

        terminate() {
            this.#frame.remove();
        }

        #load(address) {
            return new Promise((resolve, reject) => {
                const script = this.#frame.contentDocument.createElement("script");
                script.src = address;
                script.onload = () => resolve();
                script.onerror = () => reject(new Error(`cannot load ${address}`));
                this.#frame.contentDocument.head.append(script);
            });
        }
    };
    window.Worker = window.IFrameWorker;
}
